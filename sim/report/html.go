package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/sim"
)

//go:embed page.tmpl
var pageText string

// columns are the lanes of the page; the others have rows of their own.
var columns = []sim.Lane{sim.LaneClock, sim.LaneDisk, sim.LaneStore, sim.LaneCopied,
	sim.LanePolicy, sim.LaneCrash}

type page struct {
	Failure *Failure
	Failed  bool
	Subject string
	Digest  string
	Lanes   []sim.Lane
	Columns int
	Rows    []row
}

// row is a step's heading, the logs as they stand after it, or one line of a lane.
type row struct {
	Step   string
	Logs   []bar
	Height int
	At     string
	Class  string
	Cells  []string
}

// bar is one log: what of it is on disk above, what is in the store below.
type bar struct {
	Name, Note   string
	Y, End, Mark int
	Boxes        []box
}

type box struct {
	Class      string
	X, Y, W, H int
}

// HTML is one history as a page that needs no network: lanes for clock, disk, store, ledger, copied
// offset, policies and crashes, and where the logs stand between the steps.
func HTML(f *Failure, subject, digest string) []byte {
	p := page{Failure: f, Failed: f.Text != "", Subject: subject, Digest: digest, Lanes: columns,
		Columns: len(columns) + 1}
	snapshots := f.Snapshots
	end := endOf(snapshots)
	state := func(step int) {
		for len(snapshots) > 0 && snapshots[0].Step <= step {
			if r := stateRow(snapshots[0], end); len(r.Logs) > 0 {
				p.Rows = append(p.Rows, r)
			}
			snapshots = snapshots[1:]
		}
	}
	step := 0
	for _, l := range f.Trace {
		switch l.Lane {
		case sim.LaneStep:
			state(step)
			step = l.Step
			p.Rows = append(p.Rows, row{Step: fmt.Sprintf("%d  %s", l.Step, l.Text)})
		case sim.LaneEffect: // the operations say it
		case sim.LaneOracle:
			p.Rows = append(p.Rows, row{Class: "bad", At: l.At.String(), Cells: []string{l.Text}})
		default:
			p.Rows = append(p.Rows, lineRow(l))
		}
	}
	state(step + 1)
	var b bytes.Buffer
	t := template.Must(template.New("page").Parse(pageText))
	if err := t.Execute(&b, p); err != nil {
		panic(fmt.Sprintf("report: the page: %v", err)) // its data are all of this package
	}
	return b.Bytes()
}

func lineRow(l sim.Line) row {
	r := row{At: l.At.String(), Class: "line", Cells: make([]string, len(columns))}
	for _, place := range []sim.Place{sim.OnDisk, sim.InStore, sim.InLedger} {
		if text, is := strings.CutPrefix(l.Text, string(place)+": "); is {
			l.Text = text
			if !strings.Contains(text, "the process stops") && !strings.Contains(text, "fail") {
				r.Class = "op hide"
			}
		}
	}
	if l.Lane == sim.LaneLedger {
		l.Lane = sim.LaneCopied
	}
	if i := slices.Index(columns, l.Lane); i >= 0 {
		r.Cells[i] = l.Text
	}
	return r
}

// The picture of the logs, in pixels.
const (
	barLeft   = 120
	barWidth  = 600
	barHeight = 6
	rowHeight = 22
)

func endOf(snapshots []sim.Snapshot) tier.Offset {
	end := tier.Offset(1)
	for _, s := range snapshots {
		for _, l := range s.Logs {
			for _, r := range slices.Concat(l.Local, l.Remote) {
				end = max(end, r.Next+10)
			}
		}
	}
	return end
}

func stateRow(s sim.Snapshot, end tier.Offset) row {
	r := row{Height: len(s.Logs)*rowHeight + 4}
	x := func(o tier.Offset) int { return barLeft + int(o*barWidth/end) }
	for i, l := range s.Logs {
		y := i * rowHeight
		b := bar{Name: l.Log, Y: y, End: y + rowHeight - 5, Mark: x(l.Copied),
			Note: fmt.Sprintf("copied %d, start %d", l.Copied, l.LogStart)}
		if l.State != "" && l.State != tier.Enabled {
			b.Note += " " + string(l.State)
		}
		for _, seg := range l.Local {
			if seg.Empty() {
				b.Boxes = append(b.Boxes, box{"active", x(seg.Base) + 1, y + 1, 16, barHeight})
				continue
			}
			b.Boxes = append(b.Boxes, box{"local", x(seg.Base) + 1, y + 1,
				x(seg.Next) - x(seg.Base) - 2, barHeight})
		}
		for _, seg := range l.Remote {
			b.Boxes = append(b.Boxes, box{"remote", x(seg.Base) + 1, y + barHeight + 4,
				x(seg.Next) - x(seg.Base) - 2, barHeight})
		}
		r.Logs = append(r.Logs, b)
	}
	return r
}
