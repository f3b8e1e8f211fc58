package main

import (
	"fmt"

	"github.com/tierd/tierd/cmd/internal/screen"
	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/daemon"
	"github.com/tierd/tierd/runtime/tier"
)

// onceReport is what run --once prints as JSON.
type onceReport struct {
	Copied  amount         `json:"copied"`
	Deleted amount         `json:"deleted"`         // on local disk
	Removed amount         `json:"removed"`         // copies, from the store
	Orphans int64          `json:"removed_orphans"` // objects that nothing names
	Left    amount         `json:"left"`            // closed and not copied
	Waiting api.List[left] `json:"waiting"`         // nothing is wrong with these
	Alarms  api.List[left] `json:"alarms"`          // these want an operator
}

// amount is a number of segments and their bytes.
type amount struct {
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// left is a reason and what it concerns; both are null where it concerns everything.
type left struct {
	Log    *string `json:"log"`
	Source *string `json:"source"`
	api.Reason
}

func reportJSON(r *daemon.Report) onceReport {
	out := onceReport{
		Copied:  amount{r.CopiedSegments, r.CopiedBytes},
		Deleted: amount{r.DeletedSegments, r.DeletedBytes},
		Removed: amount{r.RemovedSegments, r.RemovedBytes},
		Orphans: r.RemovedOrphans,
		Left:    amount{r.UncopiedSegments, r.UncopiedBytes},
	}
	for _, x := range r.Waiting {
		out.Waiting = append(out.Waiting, leftJSON(x, false))
	}
	for _, x := range r.Alarms {
		out.Alarms = append(out.Alarms, leftJSON(x, true))
	}
	return out
}

func leftJSON(x daemon.Left, alarm bool) left {
	out := left{Reason: api.ReasonOf(x.Reason, alarm)}
	if x.Log != (tier.LogID{}) {
		log := x.Log.String()
		out.Log = &log
	}
	if x.Source != "" {
		out.Source = &x.Source
	}
	return out
}

func printReport(p *page, r *daemon.Report) {
	removed := ""
	if r.RemovedSegments > 0 {
		removed = fmt.Sprintf(", removed from the store %d (%s)", r.RemovedSegments,
			humanBytes(r.RemovedBytes))
	}
	if r.RemovedOrphans > 0 {
		removed += fmt.Sprintf(", removed %s that nothing named",
			tier.Count(r.RemovedOrphans, "object"))
	}
	p.line("copied %s (%s), deleted %d (%s)%s, left to copy %d (%s)",
		tier.Count(r.CopiedSegments, "segment"),
		humanBytes(r.CopiedBytes), r.DeletedSegments, humanBytes(r.DeletedBytes), removed,
		r.UncopiedSegments, humanBytes(r.UncopiedBytes))
	for _, x := range r.Alarms {
		p.alarm("! %s%s: %s", subject(x), x.Reason.Code, screen.Line(x.Reason.Text))
	}
	for _, x := range r.Waiting {
		p.line("  %s%s", subject(x), humanWaiting(x.Reason))
	}
}

// humanWaiting says what is waited for, and until when. What a policy decided does not end when it
// is asked again: only the answer may be another one then.
func humanWaiting(r tier.Reason) string {
	switch {
	case r.Until == 0:
		return fmt.Sprintf("waiting: %s: %s", r.Code, humanText(r))
	case r.Rule != "":
		return fmt.Sprintf("waiting: %s: %s, asked again at %s", r.Code, humanText(r), r.Until)
	}
	return fmt.Sprintf("waiting until %s: %s: %s", r.Until, r.Code, humanText(r))
}

// humanText is the text of a reason with the rule that decided, on one line.
func humanText(r tier.Reason) string {
	if by := humanRule(api.ReasonOf(r, false)); by != "" {
		return screen.Line(fmt.Sprintf("%s (%s)", r.Text, by))
	}
	return screen.Line(r.Text)
}

// subject names what a reason concerns, with a colon.
func subject(x daemon.Left) string {
	switch {
	case x.Log != (tier.LogID{}):
		return x.Log.String() + ": "
	case x.Source != "":
		return "source " + x.Source + ": "
	}
	return ""
}
