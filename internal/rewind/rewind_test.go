package rewind

import (
	"fmt"
	"strings"
	"testing"
)

// world has one of everything that is gone into.
type world struct {
	n      int
	name   string
	list   []leaf
	bytes  []byte
	by     map[string]*leaf
	any    any
	self   *world
	fixed  [3]leaf
	small  bool
	wide   uint64
	next   func() int
	hidden int // that nobody looks at
}

type leaf struct {
	of   int8
	text string
	more *leaf
}

func newWorld() *world {
	w := &world{n: 1, name: "one", list: []leaf{{1, "a", nil}, {2, "b", &leaf{of: 3}}},
		bytes: []byte("bytes"), by: map[string]*leaf{"x": {of: 4}, "y": {of: 5}},
		any: leaf{of: 6}, wide: 7}
	w.self = w
	w.next = func() int { w.n++; return w.n }
	return w
}

// changes are all ways in which a world can become another.
var changes = map[string]func(*world){
	"a number":              func(w *world) { w.n++ },
	"a text":                func(w *world) { w.name = "two" },
	"an element":            func(w *world) { w.list[0].of = 9 },
	"what an element knows": func(w *world) { w.list[1].more.text = "z" },
	"one element more":      func(w *world) { w.list = append(w.list, leaf{}) },
	"one element less":      func(w *world) { w.list = w.list[:1] },
	"a byte":                func(w *world) { w.bytes[0] = 'B' },
	"a key more":            func(w *world) { w.by["z"] = &leaf{} },
	"a key less":            func(w *world) { delete(w.by, "x") },
	"another value":         func(w *world) { w.by["x"] = &leaf{of: 44} },
	"within a value":        func(w *world) { w.by["y"].of = 55 },
	"another map":           func(w *world) { w.by = map[string]*leaf{} },
	"what it holds":         func(w *world) { w.any = leaf{of: 7} },
	"the type it holds":     func(w *world) { w.any = &leaf{of: 6} },
	"nothing held":          func(w *world) { w.any = nil },
	"within an array":       func(w *world) { w.fixed[2].text = "c" },
	"a bool":                func(w *world) { w.small = true },
	"by a closure":          func(w *world) { w.next() },
	"another self":          func(w *world) { w.self = &world{self: w} },
	"the same leaf twice":   func(w *world) { w.by["x"] = w.by["y"] },
}

func digester() *Digester {
	return NewDigester(Without{Fields: map[string][]string{"rewind.world": {"hidden"}}})
}

// TestImagePutsEverythingBack: whatever changed is as it was, in its place, again and again.
func TestImagePutsEverythingBack(t *testing.T) {
	t.Parallel()
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, d := newWorld(), digester()
			image, before := NewCamera(Without{}).Take(w), d.Of(w)
			for range 2 {
				change(w)
				if d.Of(w) == before {
					t.Error("it is not seen")
				}
				image.Restore()
				if d.Of(w) != before {
					t.Errorf("it is not put back: %+v", w)
				}
			}
		})
	}
}

// TestImageDoesNotWriteWhatStands: a variable of the package is reached as well, and another
// goroutine may read it. The race detector would tell.
func TestImageDoesNotWriteWhatStands(t *testing.T) {
	t.Parallel()
	w := newWorld()
	image := NewCamera(Without{}).Take(w)
	read := make(chan int)
	go func() {
		n := len(w.name) + int(w.list[0].of) + int(w.by["x"].of) + int(w.bytes[0])
		read <- n
	}()
	image.Restore()
	<-read
}

// TestDigestIsOfWhatThereIs: neither addresses nor the order of maps make a difference, and what is
// left out makes none.
func TestDigestIsOfWhatThereIs(t *testing.T) {
	t.Parallel()
	d := digester()
	one := newWorld()
	for i := range 20 {
		one.by[fmt.Sprint(i)] = &leaf{of: int8(i)}
	}
	for range 10 {
		other := newWorld()
		for i := range 20 {
			other.by[fmt.Sprint(19-i)] = &leaf{of: int8(19 - i)}
		}
		other.hidden = 1
		if d.Of(one) != d.Of(other) {
			t.Fatal("two that are alike are told apart")
		}
	}
}

// TestNothingIsPassedOverInSilence: what cannot be gone into, and a name of a field that is not
// there, panic.
func TestNothingIsPassedOverInSilence(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(){
		`has no fields ["gone"]`: func() {
			NewDigester(Without{Fields: map[string][]string{"rewind.leaf": {"gone"}}}).Of(&leaf{})
		},
		"have no order": func() { digester().Of(&map[*leaf]int{{}: 1, {of: 1}: 2}) },
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if said := fmt.Sprint(recover()); !strings.Contains(said, want) {
					t.Errorf("want %q, got %q", want, said)
				}
			}()
			do()
		})
	}
}
