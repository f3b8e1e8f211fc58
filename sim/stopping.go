package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
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
		w.oracle.unpersisted(before, after)
	}
	return true
}

// unpersisted (L6): something was not on disk when the process said that it had ended.
func (o *Oracle) unpersisted(before, after string) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	line := func(s []string) string {
		if i < len(s) {
			return s[i]
		}
		return "nothing"
	}
	o.violate(CleanStop, "a process stopped cleanly, and a power cut right after made of %q %q",
		line(a), line(b))
}

// persistent writes down what a process leaves: ledger, audit log and source, as they are now.
func (w *World) persistent() string {
	var b strings.Builder
	ledger, err := w.ledgerNow()
	if err != nil {
		return err.Error()
	}
	var logs []tier.LogID
	for i := range ledger.logs {
		l := &ledger.logs[i]
		logs = append(logs, l.state.Log)
		fmt.Fprintf(&b, "%s\n%s\n%s\n%s", plainly(l.state), plainly(l.attempts),
			plainly(l.tombstones), summary(l.facts))
	}
	fmt.Fprintf(&b, "%s\n", plainly(ledger.tables))
	infos, err := w.Disk.List(auditDir)
	must(err)
	for _, i := range infos {
		data, err := readFile(w.Disk, path.Join(auditDir, i.Name))
		must(err)
		fmt.Fprintf(&b, "%s %q\n", i.Name, data)
	}
	for _, id := range logs {
		for _, f := range w.files(id) {
			fmt.Fprintf(&b, "%s %q\n", f.at, f.data)
		}
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
