package choose

import "strconv"

// Step is the label of the choices that begin a step.
const Step = "step"

// Chooser makes choices. It is not safe for concurrent use.
type Chooser interface {
	// Choose gives an outcome of [0, n); n is at least 1.
	Choose(label string, n int) int
}

// picker is a Chooser that wants to know the outcomes' names, or how likely they shall be.
type picker interface {
	Pick(label string, names []string, weights []int) int
}

// Pick chooses among outcomes with names. weights say how likely chance shall make each, and mean
// nothing to other choosers; nil makes them equally likely.
func Pick(c Chooser, label string, names []string, weights []int) int {
	if p, ok := c.(picker); ok {
		return p.Pick(label, names, weights)
	}
	return c.Choose(label, len(names))
}

// later is a Chooser to which a choice may be unknown.
type later interface {
	Later(label string, names []string, weights []int) int
}

// Later chooses as Pick does, where scenarios are older than the choice: in one that lacks it,
// outcome 0 is chosen, and must mean what there was before.
func Later(c Chooser, label string, names []string, weights []int) int {
	if l, ok := c.(later); ok {
		return l.Later(label, names, weights)
	}
	return Pick(c, label, names, weights)
}

// rater is a Chooser that makes some kinds of things likelier than others.
type rater interface {
	Rate(kind string, levels ...int) int
	Favour(names []string) string
}

// Rate gives one of the levels, as how likely a kind of thing shall be in a history. It is no
// choice: a chooser that does not draw rates gives the second of the levels.
func Rate(c Chooser, kind string, levels ...int) int {
	if r, ok := c.(rater); ok {
		return r.Rate(kind, levels...)
	}
	return levels[1]
}

// Favour gives the name of what shall happen often in a history. It is no choice, either: a chooser
// that does not draw rates gives none.
func Favour(c Chooser, names []string) string {
	if f, ok := c.(rater); ok {
		return f.Favour(names)
	}
	return ""
}

// Among chooses one of the options, which are named by their own text.
func Among[T interface{ ~string }](c Chooser, label string, options []T) T {
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = string(o)
	}
	return options[Pick(c, label, names, nil)]
}

// Number chooses one of [from, to].
func Number(c Chooser, label string, from, to int) int {
	n := from + c.Choose(label, to-from+1)
	if s, ok := c.(sayer); ok {
		s.Say(strconv.Itoa(n))
	}
	return n
}

// Yes chooses between no, which is the simpler one, and yes.
func Yes(c Chooser, label string) bool {
	if c.Choose(label, 2) == 0 {
		Say(c, "no")
		return false
	}
	Say(c, "yes")
	return true
}

// sayer is a Chooser that writes down what an outcome means.
type sayer interface{ Say(word string) }

// Say tells what the outcome that was just chosen means, for people.
func Say(c Chooser, word string) {
	if s, ok := c.(sayer); ok {
		s.Say(word)
	}
}

// Choice is one that was made.
type Choice struct {
	Label string `json:"label"`
	Of    int    `json:"of"`
	Pick  int    `json:"pick"`
	Name  string `json:"name,omitempty"`
	// Said is what an outcome without a name means, for people: the number, yes or no. A replay
	// does not look at it.
	Said string `json:"said,omitempty"`
}

// String is the choice in words.
func (c Choice) String() string {
	if c.Name != "" {
		return c.Label + ": " + c.Name
	}
	if c.Said != "" {
		return c.Label + ": " + c.Said
	}
	return c.Label + ": " + strconv.Itoa(c.Pick) + " of " + strconv.Itoa(c.Of)
}

// Recorder writes down what another chooser chooses.
type Recorder struct {
	Chooser
	Made []Choice
}

// Choose implements Chooser.
func (r *Recorder) Choose(label string, n int) int {
	pick := r.Chooser.Choose(label, n)
	r.Made = append(r.Made, Choice{Label: label, Of: n, Pick: pick})
	return pick
}

// Say writes down what the last choice means.
func (r *Recorder) Say(word string) { r.Made[len(r.Made)-1].Said = word }

// Pick chooses among names.
func (r *Recorder) Pick(label string, names []string, weights []int) int {
	pick := Pick(r.Chooser, label, names, weights)
	r.Made = append(r.Made, Choice{Label: label, Of: len(names), Pick: pick, Name: names[pick]})
	return pick
}

// Later is a choice that older scenarios do not have.
func (r *Recorder) Later(label string, names []string, weights []int) int {
	pick := Later(r.Chooser, label, names, weights)
	r.Made = append(r.Made, Choice{Label: label, Of: len(names), Pick: pick, Name: names[pick]})
	return pick
}

// Rate hands on the other chooser's rates.
func (r *Recorder) Rate(kind string, levels ...int) int {
	return Rate(r.Chooser, kind, levels...)
}

// Favour hands on what the other chooser favours.
func (r *Recorder) Favour(names []string) string { return Favour(r.Chooser, names) }
