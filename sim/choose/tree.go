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
	path []branch
	at   int
}

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

// Next goes on to the next combination; false if there is none.
func (t *Tree) Next() bool {
	t.path = t.path[:t.at] // a run that ended early asked for no more
	for t.at = 0; len(t.path) > 0; t.path = t.path[:len(t.path)-1] {
		last := &t.path[len(t.path)-1]
		if last.pick++; last.pick < last.of {
			return true
		}
	}
	return false
}
