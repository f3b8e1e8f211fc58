package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"unicode/utf8"

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
	Title   string
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
	Width  int
	Note   int // where notes begin
	At     string
	Class  string
	Cells  []string
}

// bar is one log: what of it is on disk above, what is in the store below.
type bar struct {
	Name, Note   string
	Long         string // the whole name, where Name is cut
	Y, End, Mark int
	Boxes        []box
}

type box struct {
	Class      string
	X, Y, W, H int
}

// HTML is one history as a page that needs no network: lanes for clock, disk, store, copied offset,
// which has the ledger's operations, policies and crashes; and where the logs stand between steps.
func HTML(f *Failure, subject, digest string) []byte {
	p := page{Failure: f, Failed: f.Property != "", Title: f.Property, Subject: subject,
		Digest: digest, Lanes: columns, Columns: len(columns) + 1}
	if !p.Failed {
		p.Title = "every promise is kept"
	}
	snapshots := f.Snapshots
	scale := scaleOf(snapshots)
	state := func(step int) {
		for len(snapshots) > 0 && snapshots[0].Step <= step {
			if r := scale.row(snapshots[0]); len(r.Logs) > 0 {
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
			p.Rows = append(p.Rows, row{Step: fmt.Sprintf("%d  %s", l.Step, StepText(f.Steps, l))})
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
	if l.Operation {
		r.Class = "op hide"
	}
	if l.Lane == sim.LaneLedger {
		l.Lane = sim.LaneCopied
	}
	if i := slices.Index(columns, l.Lane); i >= 0 {
		r.Cells[i] = l.Text
	}
	return r
}

// The picture of the logs, in pixels. Names have the room of the longest one, in letters of one
// width.
const (
	nameWidthMin = 120
	letterWidth  = 7
	nameMax      = 40 // letters; a longer one is cut, and is whole where it is pointed at
	nameEnd      = 12 // letters of one that is cut which stay at its end
	barWidth     = 600
	noteWidth    = 260
	barHeight    = 6
	rowHeight    = 22
)

// scale says where offsets lie in the picture.
type scale struct {
	left int
	end  tier.Offset
}

func scaleOf(snapshots []sim.Snapshot) scale {
	s := scale{nameWidthMin, 1}
	for _, snapshot := range snapshots {
		for _, l := range snapshot.Logs {
			letters := min(utf8.RuneCountInString(l.Log), nameMax)
			s.left = max(s.left, letters*letterWidth+letterWidth)
			for _, r := range slices.Concat(l.Local, l.Remote) {
				s.end = max(s.end, r.Next+10)
			}
		}
	}
	return s
}

func (sc scale) row(s sim.Snapshot) row {
	note := sc.left + barWidth + 20
	r := row{Height: len(s.Logs)*rowHeight + 4, Note: note, Width: note + noteWidth}
	x := func(o tier.Offset) int { return sc.left + int(o*barWidth/sc.end) }
	for i, l := range s.Logs {
		y := i * rowHeight
		b := bar{Name: l.Log, Y: y, End: y + rowHeight - 5, Mark: x(l.Copied),
			Note: fmt.Sprintf("copied %d, start %d", l.Copied, l.LogStart)}
		if l.State != "" && l.State != tier.Enabled {
			b.Note += " " + string(l.State)
		}
		if letters := []rune(l.Log); len(letters) > nameMax {
			b.Name, b.Long = string(letters[:nameMax-1-nameEnd])+"…"+
				string(letters[len(letters)-nameEnd:]), l.Log
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
