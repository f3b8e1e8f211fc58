package choose

// Tree makes every combination of choices, one a run, depth first:
//
//	for t := (Tree{}); ; {
//		run(&t)
//		if !t.Next() {
//			break
//		}
//	}
//
// A run must ask for the same choices where it is given the same outcomes. The zero Tree begins.
type Tree struct {
	path  []branch
	at    int
	again int // choices from the beginning that the run before made, too
	fixed int // choices from the beginning that stay as they are
}

// NewTree returns a tree of the runs whose first choices have these outcomes of so many: with one
// tree for each of them the work can be shared out.
func NewTree(pick, of int) *Tree { return &Tree{path: []branch{{pick, of}}, fixed: 1} }

type branch struct{ pick, of int }

// Choose implements Chooser.
func (t *Tree) Choose(_ string, n int) int {
	if t.at == len(t.path) {
		t.path = append(t.path, branch{0, n})
	}
	b := t.path[t.at]
	if b.of != n {
		panic("choose: a run asked for another choice than it did before")
	}
	t.at++
	return b.pick
}

// New reports whether the choices of this run so far are other ones than those of the run before:
// what they came to was not met on the way to another outcome of a later choice.
func (t *Tree) New() bool { return t.at > t.again }

// Next goes on to the next combination; false if there is none.
func (t *Tree) Next() bool {
	t.path = t.path[:t.at] // a run that ended early asked for no more
	for t.at = 0; len(t.path) > t.fixed; t.path = t.path[:len(t.path)-1] {
		last := &t.path[len(t.path)-1]
		if last.pick++; last.pick < last.of {
			t.again = len(t.path) - 1
			return true
		}
	}
	return false
}
