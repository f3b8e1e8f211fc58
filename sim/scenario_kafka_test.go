package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/tierd/tierd/runtime/tier"
)

// kafka performs the commands of stories about a broker's directory. "kafka" begins such a story:
// the log orders/0, which has one batch of five offsets. "kafka silent" is a broker that keeps no
// record of its leader epochs.
func (s *scenario) kafka(d *datadriven.TestData) error {
	if d.Cmd == "kafka" {
		c := s.w.Config
		c.Layout = tier.LayoutKafka
		w, err := NewWorld(c, scenarioStart)
		if err != nil {
			return err
		}
		s.w, s.oracle = w, w.Observe()
		s.w.Trace, s.w.Trouble = s.trace, s.trouble
		s.w.Bucket.SetHook(s.hook)
		s.broker = newBroker(w, d.HasArg("silent"), orders)
		return w.Start()
	}
	if s.broker == nil {
		return fmt.Errorf("no such command: %s", d.Cmd)
	}
	s.w.Advance(time.Millisecond) // so that file systems tell the changes apart
	l := s.broker.logs[0]
	switch d.Cmd {
	case "produce": // produce batches=2 ahead=1000h: with timestamps that much in the future
		ahead := "0s"
		d.MaybeScanArgs(s.t, "ahead", &ahead)
		by, err := time.ParseDuration(ahead)
		if err != nil {
			return err
		}
		s.broker.ahead = by
		s.broker.append(l, s.number(d, "batches", 1))
		s.broker.ahead = 0
	case "stall", "follow": // no replica follows the leader; all of them have caught up
		l.stalled = d.Cmd == "stall"
		s.broker.flush(l)
	case "roll": // a new segment, with one batch
		s.broker.roll(l)
	case "lead": // lead at=15 older=1: another leader, whose log differs from there on
		i := 0
		for at := tier.Offset(s.number(d, "at", 0)); i < len(l.batches) && l.batches[i].Base < at; {
			i++
		}
		s.broker.elect(l, i, s.number(d, "older", 0))
	case "reroll": // reroll bases=0/15: the same batches, in a replica's segments
		list := ""
		d.ScanArgs(s.t, "bases", &list)
		var bases []tier.Offset
		for _, word := range strings.Split(list, "/") {
			n, err := strconv.ParseInt(word, 10, 64)
			if err != nil {
				return err
			}
			bases = append(bases, tier.Offset(n))
		}
		s.broker.reroll(l, bases)
	default:
		return fmt.Errorf("no such command: %s", d.Cmd)
	}
	return nil
}

// reroll puts the directory of another replica in the place of the log's: the same batches in other
// segments.
func (b *broker) reroll(l *brokerLog, bases []tier.Offset) {
	local, err := b.w.Bases(l.id)
	must(err)
	for _, base := range local {
		must(b.w.Remove(l.id, base))
	}
	if b.w.oracle != nil {
		b.w.oracle.cuts(l.id, 0)
	}
	l.bases, l.written = bases, map[tier.Offset]int{}
	b.flush(l)
}
