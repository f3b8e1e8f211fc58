package logdir

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Broker is the running cluster that a kafka source belongs to, where it is the one that deletes.
// Methods are safe for concurrent use and end within a time of their own.
type Broker interface {
	// Look says what the cluster says of the log now, and where the epochs end for the node that
	// leads it.
	Look(ctx context.Context, id tier.LogID, epochs []tier.LeaderEpoch) (tier.Owner, error)
	// DeleteBelow has the node give up the offsets below the one that is given, if it leads the log
	// of that incarnation, and has since it was asked, in that term. It returns where the log begins
	// then.
	DeleteBelow(ctx context.Context, id tier.LogID, node int32, incarnation string,
		term tier.LeaderEpoch, offset tier.Offset) (tier.Offset, error)
}

// identity is whom a directory says that it belongs to.
type identity struct {
	cluster     string
	node        int32
	incarnation string
}

// given is what the broker gave up at tierd's request, or was found to have given up of what is
// copied: offsets below, of one incarnation of the log.
type given struct {
	mu    sync.Mutex
	below map[tier.LogID]givenBelow
}

type givenBelow struct {
	incarnation string
	offset      tier.Offset
}

func (g *given) note(id tier.LogID, incarnation string, offset tier.Offset) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.below == nil {
		g.below = map[tier.LogID]givenBelow{}
	}
	if old := g.below[id]; old.incarnation != incarnation || old.offset < offset {
		g.below[id] = givenBelow{incarnation, offset}
	}
}

// forgot takes back what the broker does not hold to: it writes down where its logs begin once a
// minute, and after a crash begins where it did then. It reports whether there was anything.
func (g *given) forgot(id tier.LogID, incarnation string, start tier.Offset) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	old, ok := g.below[id]
	if !ok || old.incarnation != incarnation || old.offset <= start {
		return false
	}
	g.below[id] = givenBelow{incarnation, start}
	return true
}

// split takes the segments out of the scan whose files the broker has yet to remove. They stay on
// disk until its retention has come by, and are no part of the log any more.
func (g *given) split(scan *tier.Scan) {
	g.mu.Lock()
	b, ok := g.below[scan.Log]
	g.mu.Unlock()
	if !ok || b.incarnation != scan.Incarnation {
		return
	}
	n := 0
	for n < len(scan.Segments) && scan.Segments[n].Closed() && scan.Segments[n].Next <= b.offset {
		n++
	}
	scan.Dropping, scan.Segments = scan.Segments[:n:n], scan.Segments[n:]
	scan.SourceStart = max(scan.SourceStart, b.offset)
}

// keep forgets the logs that are not among those that are there. Where one comes back, the broker
// says anew what it has given up.
func (g *given) keep(there map[tier.LogID][]*folder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id := range g.below {
		if there[id] == nil {
			delete(g.below, id)
		}
	}
}

// Vet asks the cluster about the segment whose copy has the content, where the cluster is the one
// that deletes. What is not known is not yes.
func (s *Source) Vet(ctx context.Context, id tier.LogID, copied tier.Content) gate.OwnerFacts {
	var f gate.OwnerFacts
	if s.cfg.LocalDelete != tier.LocalDeleteRecords {
		return f
	}
	own, err := s.identify(id)
	if err != nil {
		f.Objection = err.Error()
		return f
	}
	epochs := make([]tier.LeaderEpoch, len(copied.Lineage))
	for i, e := range copied.Lineage {
		epochs[i] = e.Epoch
	}
	o, err := s.cfg.Broker.Look(ctx, id, epochs)
	if err != nil {
		f.Objection = err.Error()
		return f
	}
	f.Asked, f.Term, f.Start, f.HighWatermark = tier.Yes, o.LeaderEpoch, o.Start, o.HighWatermark
	object := func(ok bool, format string, args ...any) tier.Truth {
		if !ok && f.Objection == "" {
			f.Objection = fmt.Sprintf(format, args...)
		}
		return tier.TruthOf(ok)
	}
	f.SameLog = object(o.Cluster == own.cluster && o.Incarnation == own.incarnation,
		"the directory is of the cluster %s and the topic id %s, the broker's are %s and %s",
		own.cluster, own.incarnation, o.Cluster, o.Incarnation)
	if f.SameLog == tier.Yes && s.given.forgot(id, own.incarnation, o.Start) {
		s.distrust(partitionDir(id))
	}
	if f.Given = f.SameLog == tier.Yes && o.Start >= copied.Range.Next; f.Given {
		s.given.note(id, own.incarnation, copied.Range.Next)
		s.distrust(partitionDir(id))
		return f
	}
	f.Leads = object(o.Node == own.node, "node %d leads, and the directory is of node %d", o.Node,
		own.node)
	f.Deletes = object(o.Refusal == "", "%s", o.Refusal)
	f.Begins = object(copied.Range.Contains(o.Start),
		"it begins at %d, and the segment is %s", o.Start, copied.Range)
	record, err := s.epochs(id)
	if err != nil {
		f.Lineage = object(false, "%s", err)
		return f
	}
	why := leftBehind(record, copied, o)
	if why == "" && !forgetful(record, copied, o) {
		why = disagreement(copied, o)
	}
	f.Lineage = object(why == "", "%s", why)
	return f
}

// epochs reads the directory's own record of leader epochs. There is none where the log's format
// has no epochs.
func (s *Source) epochs(id tier.LogID) (record []tier.EpochStart, err error) {
	root, err := s.root()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return readEpochs(root, partitionDir(id))
}

// leftBehind says what shows that the node that leads writes to another directory than this one; ""
// if nothing does. A leader notes its epoch before it does anything in it, and cuts nothing off
// while it lasts: so a directory with that epoch has the beginning of what the leader has. One that
// was copied, or left behind on the same node, has it only as long as nothing happened since.
// Source: Partition.makeLeader of Apache Kafka.
func leftBehind(record []tier.EpochStart, copied tier.Content, o tier.Owner) string {
	switch {
	case len(record) == 0 && len(copied.Lineage) == 0:
		return ""
	case len(record) == 0:
		return fmt.Sprintf("the directory does not say in which epochs it was written, and node %d "+
			"leads in the epoch %d", o.Node, o.LeaderEpoch)
	case tier.LastEpoch(record) != o.LeaderEpoch:
		return fmt.Sprintf("node %d leads in the epoch %d, and the last one that the directory knows of "+
			"is %d: the node writes elsewhere", o.Node, o.LeaderEpoch, tier.LastEpoch(record))
	}
	return ""
}

// disagreement says where the leader's epochs are not those of the copy; "" where they agree. What
// lies below the leader's start is not compared: it has forgotten it. Batches without epochs have
// nothing to compare.
func disagreement(copied tier.Content, o tier.Owner) string {
	if len(o.Ends) != len(copied.Lineage) {
		return fmt.Sprintf("the broker answered for %d epochs of %d", len(o.Ends),
			len(copied.Lineage))
	}
	for i, e := range copied.Lineage {
		end, last := copied.LastNext, i == len(copied.Lineage)-1
		if !last {
			end = copied.Lineage[i+1].Start
		}
		got := o.Ends[i]
		if end <= o.Start {
			continue
		}
		if got.Epoch != e.Epoch || got.End < end || !last && got.End != end {
			return fmt.Sprintf("the copy has offsets [%d, %d) of epoch %d, and for the leader epoch %d "+
				"ends at %d", e.Start, end, e.Epoch, got.Epoch, got.End)
		}
	}
	return ""
}

// forgetful reports whether the leader's answers are those of the directory's own record of epochs,
// where they are not those of the copy. A broker that crashes twice in short order makes its record
// anew, of the batches above its recovery point alone, and takes an epoch below for shorter or
// longer than it was, for ever. The batches are the truth. That they are those of the leader is
// shown by the epoch in which it leads, see leftBehind; two directories that forgot alike answer
// alike.
func forgetful(record []tier.EpochStart, copied tier.Content, o tier.Owner) bool {
	n := len(copied.Lineage)
	if n == 0 || len(o.Ends) != n || o.Ends[n-1].End < copied.LastNext {
		return false
	}
	for i, e := range copied.Lineage {
		want, open, ok := endOf(record, e.Epoch)
		got := o.Ends[i]
		if !ok || got.Epoch != want.Epoch || !open && got.End != want.End {
			return false
		}
	}
	return true
}

// endOf is where a broker with the record says that the epoch ends; open where that is the end of
// the log. Source: LeaderEpochFileCache.endOffsetFor of Apache Kafka.
func endOf(record []tier.EpochStart, asked tier.LeaderEpoch) (end tier.EpochEnd, open, ok bool) {
	higher := slices.IndexFunc(record, func(e tier.EpochStart) bool { return e.Epoch > asked })
	switch {
	case higher < 0:
		ok = len(record) > 0 && record[len(record)-1].Epoch == asked
		return tier.EpochEnd{Asked: asked, Epoch: asked}, ok, ok
	case higher == 0:
		return tier.EpochEnd{Asked: asked, Epoch: asked, End: record[0].Start}, false, true
	default:
		return tier.EpochEnd{Asked: asked, Epoch: record[higher-1].Epoch,
			End: record[higher].Start}, false, true
	}
}

// identify reads whom the source's directory and that of the log say that they belong to.
func (s *Source) identify(id tier.LogID) (own identity, err error) {
	root, err := s.root()
	if err != nil {
		return own, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	text, err := readText(root, fileProperties)
	if err != nil {
		return own, err
	}
	if err := own.properties(text); err != nil {
		return own, err
	}
	at := path.Join(partitionDir(id), filePartition)
	if text, err = readText(root, at); err != nil {
		return own, err
	}
	own.incarnation, err = parseTopicID(at, text)
	return own, err
}

// properties reads meta.properties: lines of "key=value". Source: MetaProperties of Apache Kafka.
func (own *identity) properties(text string) error {
	node := ""
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch strings.TrimSpace(key) {
		case "cluster.id":
			own.cluster = strings.TrimSpace(value)
		case "node.id", "broker.id":
			node = strings.TrimSpace(value)
		}
	}
	n, err := strconv.ParseInt(node, 10, 32)
	if err != nil || own.cluster == "" {
		return fmt.Errorf("%s: want cluster.id and node.id: %w", fileProperties, tier.ErrDamaged)
	}
	own.node = int32(n)
	return nil
}

// give has the broker give the segment up. Nothing is removed here: the broker does that.
func (s *Source) give(ctx context.Context, root vfs.Dir, dir string, target gate.Target) error {
	names, err := root.Names(dir)
	if err != nil {
		return gone(err)
	}
	seg, err := s.segment(root, dir, names, target.Range)
	if err != nil {
		return err
	}
	if seg.stat != target.File || seg.bytes != target.Bytes {
		return fmt.Errorf("%s: %w: it is not the file that the permit is for", seg.name,
			tier.ErrChanged)
	}
	own, err := s.identify(target.Log)
	if err != nil {
		return err
	}
	start, err := s.cfg.Broker.DeleteBelow(ctx, target.Log, own.node, own.incarnation,
		target.Term, target.Range.Next)
	if err != nil {
		return err
	}
	if start < target.Range.Next {
		return fmt.Errorf("the broker's log begins at %d after it was told to give up what is below %d",
			start, target.Range.Next)
	}
	s.given.note(target.Log, own.incarnation, target.Range.Next)
	return nil
}
