package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// CleanStop (L6) is that a process that was told to stop, and did, leaves nothing that a power cut
// right after it could take.
const CleanStop Property = "L6 CleanStopPersists"

// Stop plays SIGTERM between two effects, and a power cut right after the process has ended. It
// reports false where the process did not come to its clean end.
func (w *World) Stop() (clean bool) {
	p := w.process
	err := w.act(func() error {
		return errors.Join(p.source.Close(), p.audit.Close(), p.ledger.Close())
	})
	if err != nil {
		return false
	}
	before := w.remains()
	w.Crash(nil)
	after := w.remains()
	if !slices.EqualFunc(before, after, remnant.is) && w.oracle != nil {
		w.oracle.violate(CleanStop, "a process stopped cleanly, and a power cut right after took "+
			"something: %s", firstDifference(textOf(before), textOf(after)))
	}
	return true
}

// remnant is one thing that a process leaves.
type remnant struct {
	name string
	stat tier.Stat // of a file of the source
	data []byte    // shared with who has it, and never changed
}

func (r remnant) is(other remnant) bool {
	return r.name == other.name && r.stat == other.stat && bytes.Equal(r.data, other.data)
}

// remains is everything that a process leaves: ledger, audit log, source and store, as they are
// now.
func (w *World) remains() (out []remnant) {
	ledger, err := w.ledgerNow()
	if err != nil {
		return []remnant{{name: err.Error()}}
	}
	add := func(name string, data []byte) { out = append(out, remnant{name: name, data: data}) }
	for _, l := range ledger.logs {
		out = append(out, l.remains()...)
		for _, f := range w.files(l.state.Log) {
			out = append(out, remnant{f.at, f.stat, f.data})
		}
	}
	for _, t := range ledger.tables {
		add("table", plainly(t))
	}
	w.Disk.Look(auditDir, func(i vfs.Info, data []byte) { add(i.Name, data) })
	w.Objects.Look(add)
	return out
}

// remains is what the ledger has of the log. It is not to be changed.
func (l *ledgerLog) remains() []remnant {
	if l.written == nil {
		l.written = []remnant{{name: "state", data: plainly(l.state)},
			{name: "attempts", data: plainly(l.attempts)},
			{name: "tombstones", data: plainly(l.tombstones)},
			{name: "facts", data: []byte(summary(l.facts))}}
	}
	return l.written
}

// persistent is what remains, written down.
func (w *World) persistent() string { return textOf(w.remains()) }

func textOf(remains []remnant) string {
	var b strings.Builder
	for _, r := range remains {
		fmt.Fprintf(&b, "%s %+v: %q\n", r.name, r.stat, r.data)
	}
	return b.String()
}

// plainly writes a value down without addresses, which differ where the values do not.
func plainly(v any) []byte {
	text, err := json.Marshal(v)
	must(err)
	return text
}

// stopsCleanly tells the process to stop, and begins another one.
func (h *play) stopsCleanly() {
	h.disk = 0
	if h.w.Ended() == nil && !h.lies && h.w.Stop() {
		h.line(LaneCrash, "the process stops cleanly, and then the machine")
		h.startProcess()
		return
	}
	h.crashed()
}
