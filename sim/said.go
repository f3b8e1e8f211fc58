package sim

import (
	"fmt"
	"strings"

	"github.com/tierd/tierd/runtime/engine"
)

// saidMost is how many segments one line of a plugin's answer names for each thing that it asks.
const saidMost = 3

// saidLines are what plugins answered, for people: a line for each that asks for something.
func saidLines(f engine.Select, r *engine.Selected) (lines []string) {
	for k, name := range r.Plugins {
		var holds, keeps, scores named
		row := 0
		for _, l := range f.Logs {
			for _, s := range l.Segments {
				at := fmt.Sprintf("%s %s", l.Log, s.Range)
				if r.Holds[row]>>k&1 == 1 {
					holds.add(at)
				}
				if r.Keeps[row]>>k&1 == 1 {
					keeps.add(at)
				}
				if score := r.Scores[row*len(r.Plugins)+k]; score != 0 {
					scores.add(fmt.Sprintf("%s %d", at, score))
				}
				row++
			}
		}
		parts := append(holds.text("holds "), append(keeps.text("keeps "),
			scores.text("gives a score to ")...)...)
		if len(parts) > 0 {
			lines = append(lines, "plugin "+name+" "+strings.Join(parts, "; "))
		}
	}
	return lines
}

// named are things of which the first few are named.
type named struct {
	list []string
	more int
}

func (n *named) add(s string) {
	if len(n.list) < saidMost {
		n.list = append(n.list, s)
	} else {
		n.more++
	}
}

// text is empty where there are none.
func (n *named) text(before string) []string {
	if len(n.list) == 0 {
		return nil
	}
	out := before + strings.Join(n.list, ", ")
	if n.more > 0 {
		out += fmt.Sprintf(" and %d more", n.more)
	}
	return []string{out}
}
