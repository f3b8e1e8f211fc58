package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/tier"
)

// between is what a story says that happens in the middle of a call of the store.
type between struct {
	kind  fault.OpKind
	key   string // part of the object's key
	lines []string
}

// more performs the commands that few stories need.
func (s *scenario) more(d *datadriven.TestData) error {
	switch d.Cmd {
	case "meanwhile": // meanwhile put key=.log, and below it the commands
		b := between{kind: fault.OpKind(d.CmdArgs[0].Key), lines: strings.Split(d.Input, "\n")}
		if b.kind == "put" {
			b.kind = fault.OpUpload
		}
		d.MaybeScanArgs(s.t, "key", &b.key)
		s.between = append(s.between, b)
		return nil
	case "giveup": // what is under way longest is waited for no more, and goes on
		s.w.GiveUp()
		return nil
	case "read":
		return s.read(d)
	case "repeat": // repeat times=64, and below it the commands; what they do is counted
		return s.repeat(d)
	case "plugin": // plugin moods=trap/keep seed=1: the imp, which takes a mood for each question
		return s.plugin(d)
	}
	return s.kafka(d)
}

// meets performs what happens in the middle of the call, the first of what was said of such a call.
func (s *scenario) meets(op fault.Op) {
	i := slices.IndexFunc(s.between, func(b between) bool {
		return b.kind == op.Kind && strings.Contains(op.Key, b.key)
	})
	if i < 0 {
		return
	}
	b := s.between[i]
	s.between = slices.Delete(s.between, i, i+1)
	fmt.Fprintf(&s.out, "%s %s begins\n", op.Kind, shortKey(op.Key))
	s.lines(b.lines)
	fmt.Fprintf(&s.out, "%s %s comes back\n", op.Kind, shortKey(op.Key))
}

// lines performs commands that stand one on a line; all that follows "config" is the configuration.
func (s *scenario) lines(list []string) {
	for _, line := range list {
		d := &datadriven.TestData{}
		if text, ok := strings.CutPrefix(line, "config "); ok {
			d.Cmd, d.Input = "config", text
		} else {
			var err error
			if d.Cmd, d.CmdArgs, err = datadriven.ParseLine(line); err != nil {
				s.t.Fatal(err)
			}
		}
		if err := s.perform(d); err != nil {
			fmt.Fprintf(&s.out, "error: %v\n", err)
		}
	}
}

// repeat performs the commands so many times, and tells how often each thing was done. The oracle
// only takes notes meanwhile: of thousands of copies it looks at each when all is done.
func (s *scenario) repeat(d *datadriven.TestData) error {
	before := s.out.String()
	s.oracle.blind = true
	for range s.number(d, "times", 1) {
		s.lines(strings.Split(d.Input, "\n"))
	}
	s.oracle.blind = false
	said := strings.TrimPrefix(s.out.String(), before)
	s.out.Reset()
	s.out.WriteString(before)
	var words []string
	times := map[string]int{}
	for line := range strings.Lines(said) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if times[word]++; times[word] == 1 {
			words = append(words, word)
		}
	}
	for _, word := range words {
		fmt.Fprintf(&s.out, "%d times: %s\n", times[word], word)
	}
	s.oracle.changed = true
	return s.w.act(func() error { return nil })
}

// foreign leaves an object in the store that another ledger has put there, or did once.
func (s *scenario) foreign(d *datadriven.TestData) error {
	ledger := ""
	d.ScanArgs(s.t, "ledger", &ledger)
	keys, err := objstore.NewKeys(ledger)
	if err != nil {
		return err
	}
	key, err := keys.File(tier.ObjectKey{Log: s.log(d), Epoch: 1, Attempt: tier.AttemptID{0xff},
		Name: segmentName(0)})
	s.oracle.stray(key)
	s.w.Objects.Put(key, []byte("foreign"))
	return err
}

// trouble writes what the daemon has a log line for.
func (s *scenario) trouble(p tier.Problem) {
	fmt.Fprintf(&s.out, "logged: %s: %s: %s\n", p.Path, p.Reason.Code, p.Reason.Text)
}

// plugin puts the plugin imp in force, and has the story say when it gives no answer.
func (s *scenario) plugin(d *datadriven.TestData) error {
	moods := ""
	d.ScanArgs(s.t, "moods", &moods)
	s.plugins = impSet(s.t, s.number(d, "seed", 1), strings.Split(moods, "/")...)
	s.t.Cleanup(s.w.Close)
	s.w.Answered = func(_ engine.Selected, faults []plugin.Fault) {
		for _, f := range faults {
			fmt.Fprintf(&s.out, "plugin %s gives no answer (%s), and is asked again at %s\n", f.Plugin,
				f.Kind, f.Until)
		}
	}
	return s.reload(false)
}

// land lets the n-th of the uploads that come late take effect; with 0 all of them, as they came.
func (s *scenario) land(n int) error {
	for {
		late := s.w.Bucket.Late()
		i := max(n, 1) - 1
		if i >= len(late) {
			if n == 0 {
				return nil
			}
			return fmt.Errorf("only %d uploads come late", len(late))
		}
		fmt.Fprintf(&s.out, "the store has %s after all\n", shortKey(late[i].Key))
		if err := s.w.Bucket.Land(s.t.Context(), i); err != nil || n > 0 {
			return err
		}
	}
}

// objects lists the store: "objects key=/manifest/", those with the part in their key; with "count"
// it says how many there are.
func (s *scenario) objects(d *datadriven.TestData) error {
	part := ""
	d.MaybeScanArgs(s.t, "key", &part)
	own := s.w.Ledger().ID() + "/"
	list := slices.DeleteFunc(s.w.Objects.Keys(), func(key string) bool {
		return !strings.Contains(key, part)
	})
	if d.HasArg("count") {
		fmt.Fprintf(&s.out, "%d objects\n", len(list))
		return nil
	}
	for _, key := range list {
		if !strings.HasPrefix(key, own) {
			fmt.Fprint(&s.out, "of another ledger: ")
		}
		fmt.Fprintln(&s.out, shortKey(key))
	}
	return nil
}

// read plays a consumer that reads the log to its end, and says which tier it was given what from.
func (s *scenario) read(d *datadriven.TestData) error {
	id := s.log(d)
	s.w.process.reader = nil // one that has nothing in its cache
	for at := tier.Offset(s.number(d, "from", 0)); ; {
		calls := s.w.Bucket.Calls()
		c, err, ended := s.w.Read(id, at)
		if err != nil || ended != nil {
			return cmp.Or(err, ended)
		}
		from := "local"
		if s.w.Bucket.Calls() > calls {
			from = "remote"
		}
		switch {
		case len(c.Batches) > 0:
			fmt.Fprintf(&s.out, "[%d, %d) %d bytes, %s\n", c.Base, c.Next, len(c.Batches), from)
		case c.Next > at:
			fmt.Fprintf(&s.out, "[%d, %d) nothing\n", at, c.Next)
		default:
			return nil
		}
		at = c.Next
	}
}
