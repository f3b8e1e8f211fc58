package choose

import (
	"fmt"
	"slices"
)

// Replay makes the choices of a list, and insists that they are the ones it is asked for. Where
// they are not it panics with a *Mismatch, which Catch turns into an error. Behind the end of the
// list outcome 0 is chosen: a history whose failure was mended goes on to its end.
type Replay struct {
	choices []Choice
	at      int
}

// NewReplay returns a chooser of the choices.
func NewReplay(choices []Choice) *Replay { return &Replay{choices: choices} }

// Mismatch is a choice of a list that is not the one that a run asks for.
type Mismatch struct {
	Number int // of the choice, from 1
	Text   string
}

// Error implements error.
func (m *Mismatch) Error() string { return fmt.Sprintf("choice %d: %s", m.Number, m.Text) }

// Catch runs what may meet a mismatch.
func Catch(run func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			m, ok := r.(*Mismatch)
			if !ok {
				panic(r)
			}
			err = m
		}
	}()
	run()
	return nil
}

func (r *Replay) wrong(format string, args ...any) {
	panic(&Mismatch{r.at + 1, fmt.Sprintf(format, args...)})
}

func (r *Replay) next(label string, n int) Choice {
	if r.at == len(r.choices) {
		return Choice{Label: label, Of: n}
	}
	c := r.choices[r.at]
	switch {
	case c.Label != label:
		r.wrong("the scenario has %q, and the history asks for %q", c.Label, label)
	case c.Of != n:
		r.wrong("%q has %d outcomes in the scenario and %d in the history", label, c.Of, n)
	}
	return c
}

// Choose implements Chooser.
func (r *Replay) Choose(label string, n int) int {
	c := r.next(label, n)
	r.at = min(r.at+1, len(r.choices))
	return c.Pick
}

// Pick chooses among names. The outcome of that name is chosen, wherever it stands among them.
func (r *Replay) Pick(label string, names []string, _ []int) int {
	if r.at < len(r.choices) && r.choices[r.at].Label == label {
		if i := slices.Index(names, r.choices[r.at].Name); i >= 0 {
			r.at++
			return i
		}
		r.wrong("%q has no outcome %q", label, r.choices[r.at].Name)
	}
	c := r.next(label, len(names))
	r.at = min(r.at+1, len(r.choices))
	return c.Pick
}

// Later chooses as Pick does where the list has the choice next, and else outcome 0.
func (r *Replay) Later(label string, names []string, weights []int) int {
	if r.at < len(r.choices) && r.choices[r.at].Label != label {
		return 0
	}
	return r.Pick(label, names, weights)
}

// Loose makes the choices of a list as far as they fit: in each step those with the right label, in
// order, and outcome 0 where there is none. An outcome with a name is the one of that name, and a
// step of which there is none is left out. It is for shrinking, where a list has lost some of what
// it was made for, and for histories under another configuration.
type Loose struct {
	steps [][]Choice // the first one is what comes before all steps
	step  int
	at    int
}

// NewLoose returns a chooser of the choices.
func NewLoose(choices []Choice) *Loose { return &Loose{steps: Steps(choices)} }

// Steps cuts choices into what comes before all steps, and the steps.
func Steps(choices []Choice) [][]Choice {
	out := [][]Choice{nil}
	for _, c := range choices {
		if c.Label == Step {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// Choose implements Chooser.
func (l *Loose) Choose(label string, n int) int {
	c, _ := l.next(label)
	return min(c.Pick, n-1)
}

// Pick chooses among names.
func (l *Loose) Pick(label string, names []string, _ []int) int {
	for {
		c, ok := l.next(label)
		if !ok || c.Name == "" {
			return min(c.Pick, len(names)-1)
		}
		if i := slices.Index(names, c.Name); i >= 0 {
			return i
		}
		if label != Step {
			return 0
		}
	}
}

// next is the next choice with the label; ok is false, and the choice the zero one, where there is
// none.
func (l *Loose) next(label string) (c Choice, ok bool) {
	if label == Step {
		l.step, l.at = l.step+1, 0
	}
	if l.step >= len(l.steps) {
		return Choice{}, false
	}
	choices := l.steps[l.step]
	for i := l.at; i < len(choices); i++ {
		if choices[i].Label == label {
			l.at = i + 1
			return choices[i], true
		}
	}
	return Choice{}, false
}
