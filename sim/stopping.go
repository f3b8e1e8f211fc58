package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
	before := w.persistent()
	w.Crash(nil)
	after := w.persistent()
	if before != after && w.oracle != nil {
		w.oracle.violate(CleanStop, "a process stopped cleanly, and a power cut right after took "+
			"something: %s", firstDifference(before, after))
	}
	return true
}

// persistent writes down everything that a process leaves: ledger, audit log, source and store, as
// they are now.
func (w *World) persistent() string {
	ledger, err := w.ledgerNow()
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	bytes := func(name string, data []byte) {
		fmt.Fprintf(&b, "%s, %d bytes: ", name, len(data))
		b.Write(data)
		b.WriteByte('\n')
	}
	for i := range ledger.logs {
		l := &ledger.logs[i]
		fmt.Fprintf(&b, "%s\n%s\n%s\n%s\n", plainly(l.state), plainly(l.attempts),
			plainly(l.tombstones), summary(l.facts))
		for _, f := range w.files(l.state.Log) {
			bytes(fmt.Sprintf("%s %+v", f.at, f.stat), f.data)
		}
	}
	for _, t := range ledger.tables {
		fmt.Fprintf(&b, "%s\n", plainly(t))
	}
	w.Disk.Look(auditDir, func(i vfs.Info, data []byte) { bytes(i.Name, data) })
	w.Objects.Look(bytes)
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
