package rewind

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// world has one of everything that is gone into.
type world struct {
	n      int
	name   string
	inside *int8  // the first field of a leaf that is reached as a whole later
	front  []leaf // the first of list
	list   []leaf
	bytes  []byte
	by     map[string]*leaf
	other  map[string]*leaf
	pairs  map[[2]int8]int
	any    any
	boxes  []any
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

// twin looks like a leaf.
type twin leaf

func newWorld() *world {
	w := &world{n: 1, name: "one", list: []leaf{{1, "a", nil}, {2, "b", &leaf{of: 3}}},
		bytes: []byte("bytes"), by: map[string]*leaf{"x": {of: 4}, "y": {of: 5}},
		other: map[string]*leaf{"x": {of: 6}}, pairs: map[[2]int8]int{{1, 2}: 3}, any: leaf{of: 6},
		boxes: []any{&leaf{of: 7}}, fixed: [3]leaf{{text: fmt.Sprint(10)}}, wide: 7}
	w.inside, w.front = &w.list[1].more.of, w.list[:1]
	w.self = w
	w.next = func() int { w.n++; return w.n }
	return w
}

// changes are all ways in which a world can become another.
var changes = map[string]func(*world){
	"a number":              func(w *world) { w.n++ },
	"a text":                func(w *world) { w.name = "two" },
	"a longer text":         func(w *world) { w.name = "one\x00" },
	"an element":            func(w *world) { w.list[0].of = 9 },
	"what an element knows": func(w *world) { w.list[1].more.text = "z" },
	"one element more":      func(w *world) { w.list = append(w.list, leaf{}) },
	"one element less":      func(w *world) { w.list = w.list[:1] },
	"a byte":                func(w *world) { w.bytes[0] = 'B' },
	"a key more":            func(w *world) { w.by["z"] = &leaf{} },
	"a key less":            func(w *world) { delete(w.by, "x") },
	"one key for another":   func(w *world) { w.by["z"] = w.by["x"]; delete(w.by, "x") },
	"another value":         func(w *world) { w.by["x"] = &leaf{of: 44} },
	"within a value":        func(w *world) { w.by["y"].of = 55 },
	"another map":           func(w *world) { delete(w.by, "x"); w.by = map[string]*leaf{} },
	"a second map":          func(w *world) { delete(w.other, "x") },
	"under a key":           func(w *world) { w.pairs[[2]int8{1, 2}]++ },
	"another key":           func(w *world) { w.pairs = map[[2]int8]int{{2, 1}: 3} },
	"what it holds":         func(w *world) { w.any = leaf{of: 7} },
	"the type it holds":     func(w *world) { w.any = twin{of: 6} },
	"nothing held":          func(w *world) { w.any = nil },
	"within what is held":   func(w *world) { w.boxes[0].(*leaf).of++ },
	"within an array":       func(w *world) { w.fixed[2].text = "c" },
	"a bool":                func(w *world) { w.small = true },
	"the last byte":         func(w *world) { w.wide |= 1 << 63 },
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
			c := NewCamera(Without{})
			c.Take(w) // one image is not in the way of the next
			image, before := c.Take(w), d.Of(w)
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

// TestImageGoesIntoKeys: no digest does.
func TestImageGoesIntoKeys(t *testing.T) {
	t.Parallel()
	key := &leaf{of: 1}
	image := NewCamera(Without{}).Take(&map[*leaf]int{key: 1})
	key.of = 2
	image.Restore()
	if key.of != 1 {
		t.Errorf("the key is restored to %d, want 1", key.of)
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
		one.pairs[[2]int8{0, int8(i)}] = i
	}
	for range 10 {
		other := newWorld()
		for i := range 20 {
			other.by[fmt.Sprint(19-i)] = &leaf{of: int8(19 - i)}
			other.pairs[[2]int8{0, int8(19 - i)}] = 19 - i
		}
		other.hidden = 1
		if d.Of(one) != d.Of(other) {
			t.Fatal("two that are alike are told apart")
		}
	}
}

// TestWithout: what is of a type that is left out is not looked at, and not put back.
func TestWithout(t *testing.T) {
	t.Parallel()
	type outer struct {
		n  int
		to *leaf
	}
	without := Without{Types: []string{"*rewind.leaf"}}
	w, d := &outer{1, &leaf{of: 1}}, NewDigester(without)
	image, before := NewCamera(without).Take(w), d.Of(w)
	w.to.of = 2
	if d.Of(w) != before {
		t.Error("what is left out makes a difference")
	}
	w.n = 2
	image.Restore()
	if w.n != 1 || w.to.of != 2 {
		t.Errorf("restored to %d and %d, want 1 and 2", w.n, w.to.of)
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
		"unsafe.Pointer leads to": func() {
			var p atomic.Pointer[leaf]
			p.Store(&leaf{})
			NewCamera(Without{}).Take(&p)
		},
		"what an unsafe.Pointer": func() {
			var p atomic.Pointer[leaf]
			p.Store(&leaf{})
			digester().Of(&p)
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

// TestMuchAndDeep: nothing is lost where much is met, and maps of one kind lie in each other.
func TestMuchAndDeep(t *testing.T) {
	t.Parallel()
	type knot struct {
		n    int
		next *knot
		kin  map[string]*knot
	}
	const many = 3 * seenMin
	var knots [many]knot
	for i := range many - 1 {
		knots[i].next = &knots[i+1]
	}
	for i := range many / 2 {
		knots[i].kin = map[string]*knot{"one": {n: i}, "other": &knots[many-1-i], "self": &knots[i]}
	}
	d := digester()
	image, before := NewCamera(Without{}).Take(&knots[0]), d.Of(&knots[0])
	if d.Of(&knots[0]) != before {
		t.Error("the second time it is another")
	}
	for _, i := range []int{0, 1, many / 3, many - 1} {
		for name, change := range map[string]func(){
			"number": func() { knots[i].n++ },
			"kin":    func() { knots[i].kin = map[string]*knot{"one": &knots[i]} },
			"within": func() { knots[i/3].kin["one"].n++ },
		} {
			change()
			if d.Of(&knots[0]) == before {
				t.Errorf("knot %d: another %s is not seen", i, name)
			}
			image.Restore()
			if d.Of(&knots[0]) != before {
				t.Errorf("knot %d: its %s is not put back", i, name)
			}
		}
	}
}

// TestMapsWithinMaps: each leaf of a tree of maps makes a difference.
func TestMapsWithinMaps(t *testing.T) {
	t.Parallel()
	type tree struct {
		n  int
		of map[string]*tree
	}
	var leaves []*tree
	var grow func(depth int) *tree
	grow = func(depth int) *tree {
		out := &tree{of: map[string]*tree{}}
		if depth == 0 {
			leaves = append(leaves, out)
			return out
		}
		for i := range 3 {
			out.of[fmt.Sprint(i)] = grow(depth - 1)
		}
		return out
	}
	root, d := grow(3), digester()
	before := d.Of(root)
	for i, l := range leaves {
		l.n++
		if d.Of(root) == before {
			t.Errorf("leaf %d is not seen", i)
		}
		if l.n--; d.Of(root) != before {
			t.Fatalf("with leaf %d as it was it is another", i)
		}
	}
}
