package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/logdir/kbatch/kbatchtest"
	"github.com/tierd/tierd/runtime/tier"
)

const now = tier.Time(1_800_000_000_000_000_000)

var orders = tier.LogID{Table: "orders", Name: "0"}

// shelf is a store in memory.
type shelf struct {
	objects map[tier.ObjectKey][]byte
	facts   []tier.Fact
	entries map[tier.Position]tier.Fact
	blocks  map[string][]tier.Fact
	wrong   map[string]error
	others  []tier.StoredObject
	err     error // of every call
}

func (s *shelf) FileKey(k tier.ObjectKey) (string, error) { return k.Name, nil }

func (s *shelf) StatFile(_ context.Context, k tier.ObjectKey, size int64) error {
	data, ok := s.objects[k]
	switch {
	case s.err != nil:
		return s.err
	case !ok:
		return fmt.Errorf("%s: %w", k.Name, tier.ErrVanished)
	case int64(len(data)) != size:
		return fmt.Errorf("%s: %d bytes: %w", k.Name, len(data), tier.ErrDamaged)
	}
	return nil
}

func (s *shelf) ReadFile(_ context.Context, k tier.ObjectKey, off int64, bufs ...[]byte) error {
	if s.err != nil {
		return s.err
	}
	for _, b := range bufs {
		off += int64(copy(b, s.objects[k][off:]))
	}
	return nil
}

func (s *shelf) Facts(context.Context, tier.LogID) ([]tier.Fact, map[string]error, error) {
	return s.facts, s.wrong, s.err
}

func (s *shelf) Entry(_ context.Context, _ tier.LogID, pos tier.Position, _ tier.AttemptID) (
	tier.Fact, string, error) {
	key := fmt.Sprint("entry ", pos)
	if f, ok := s.entries[pos]; ok || s.err != nil {
		return f, key, s.err
	}
	return tier.Fact{}, key, fmt.Errorf("%s: %w", key, tier.ErrVanished)
}

func (s *shelf) Block(_ context.Context, _ tier.LogID, level uint8, block uint64) ([]tier.Fact,
	string, error) {
	key := fmt.Sprintf("L%d %d", level, block)
	if facts, ok := s.blocks[key]; ok || s.err != nil {
		return facts, key, s.err
	}
	return nil, key, fmt.Errorf("%s: %w", key, tier.ErrDamaged)
}

func (s *shelf) Objects(_ context.Context, fn func(tier.StoredObject) error) error {
	for _, o := range s.others {
		if err := fn(o); err != nil {
			return err
		}
	}
	return s.err
}

// archived is a log of one copy of [0, 20), and a store that has it.
func archived() (*Log, *shelf) {
	var data []byte
	for o := tier.Offset(0); o < 20; o += 5 {
		data = kbatchtest.V2(data, kbatchtest.Spec{Base: o, Last: o + 4, Body: 30})
	}
	return of(data)
}

func of(data []byte) (*Log, *shelf) {
	c := &tier.Copy{Attempt: tier.AttemptID{1}, Epoch: 1, Content: tier.Content{
		Range: tier.Range{Base: 0, Next: 20}, LastNext: 20}}
	for name, content := range map[string][]byte{"0.log": data} {
		c.Content.Files = append(c.Content.Files, tier.SourceFile{FileDigest: tier.FileDigest{Name: name,
			Size: int64(len(content)), SHA256: sha256.Sum256(content),
			CRC32C: crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))}})
	}
	fact := tier.Fact{Epoch: 1, Copied: 20, Add: c}
	l := &Log{ID: orders, Layout: tier.LayoutKafka, Copied: 20, Positions: 1,
		Facts: []tier.Fact{fact}, Counted: []tier.Counted{{Range: tier.Range{Base: 0, Next: 20}}}}
	s := &shelf{facts: []tier.Fact{fact}, entries: map[tier.Position]tier.Fact{0: fact},
		objects: map[tier.ObjectKey][]byte{c.Object(orders, "0.log"): data}}
	return l, s
}

func kinds(list []Finding) (out []Kind) {
	for _, f := range list {
		out = append(out, f.Kind)
	}
	return out
}

func TestContent(t *testing.T) {
	t.Parallel()
	overlapping := kbatchtest.V2(nil, kbatchtest.Spec{Base: 0, Last: 9})
	overlapping = kbatchtest.V2(overlapping, kbatchtest.Spec{Base: 5, Last: 12})
	nothing := func(*shelf, tier.ObjectKey) {}
	for name, tc := range map[string]struct {
		data   []byte // that was copied; nil is a right one
		damage func(*shelf, tier.ObjectKey)
		want   []Kind
	}{
		"right": {nil, nothing, nil},
		"a bit": {nil, func(s *shelf, k tier.ObjectKey) { s.objects[k][70] ^= 1 }, []Kind{KindContent}},
		"lost":  {nil, func(s *shelf, k tier.ObjectKey) { delete(s.objects, k) }, []Kind{KindLost}},
		"short": {nil, func(s *shelf, k tier.ObjectKey) { s.objects[k] = s.objects[k][1:] },
			[]Kind{KindSize}},
		"overlapping": {overlapping, nothing, []Kind{KindBatch}},
		"no batches": {[]byte("not batches at all, though their sum is right"), nothing,
			[]Kind{KindBatch}},
		"out of range": {kbatchtest.V2(nil, kbatchtest.Spec{Base: 90, Last: 99}), nothing,
			[]Kind{KindBatch}},
	} {
		l, s := archived()
		if tc.data != nil {
			l, s = of(tc.data)
		}
		c := l.Copies()[0]
		tc.damage(s, c.Object(orders, "0.log"))
		done, paced := int64(0), 0
		r := Reading{Done: func(n int64) { done += n }, Pace: func(_ context.Context, n int) error {
			paced += n
			return nil
		}}
		got, err := r.Content(t.Context(), s, orders, l.Layout, &c)
		if err != nil || !slices.Equal(kinds(got), tc.want) || done != int64(paced) {
			t.Errorf("%s: %+v %v, %d bytes of %d", name, got, err, done, paced)
		}
	}
}

// TestAStoreThatCannotBeAskedFindsNothing: what is not known is no finding.
func TestAStoreThatCannotBeAskedFindsNothing(t *testing.T) {
	t.Parallel()
	l, s := archived()
	s.err = errors.New("503")
	c := l.Copies()[0]
	r := Reading{}
	for what, ask := range map[string]func() ([]Finding, error){
		"content":  func() ([]Finding, error) { return r.Content(t.Context(), s, orders, l.Layout, &c) },
		"sizes":    func() ([]Finding, error) { return Sizes(t.Context(), s, orders, &c) },
		"manifest": func() ([]Finding, error) { return Manifest(t.Context(), s, l) },
		"entry":    func() ([]Finding, error) { return Entry(t.Context(), s, l, &c) },
		"orphans": func() ([]Finding, error) {
			return Orphans(t.Context(), s, []*Log{l}, now, 1, func(tier.LogID) bool { return true })
		},
	} {
		if got, err := ask(); len(got) > 0 || !errors.Is(err, s.err) {
			t.Errorf("%s: %+v %v", what, got, err)
		}
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Log, *shelf)
		want   []Kind
	}{
		"right":       {func(*Log, *shelf) {}, nil},
		"lost":        {func(_ *Log, s *shelf) { s.facts = nil }, []Kind{KindManifest}},
		"unpublished": {func(l *Log, s *shelf) { s.facts, l.Unpublished = nil, []tier.Position{0} }, nil},
		"foreign": {func(_ *Log, s *shelf) {
			s.wrong = map[string]error{"b": tier.ErrDamaged, "a": tier.ErrDamaged}
		}, []Kind{KindManifest, KindManifest}},
		"newer": {func(l *Log, s *shelf) {
			s.facts = append(s.facts, tier.Fact{Position: 7, Hole: &tier.Hole{}})
		}, []Kind{KindStale}},
		"another copy": {func(_ *Log, s *shelf) {
			other := *s.facts[0].Add
			other.Content.Files = slices.Clone(other.Content.Files)
			other.Content.Files[0].SHA256[0] ^= 1
			s.facts = []tier.Fact{{Epoch: 1, Add: &other}}
		}, []Kind{KindManifest}},
		"a hole in its place": {func(_ *Log, s *shelf) {
			s.facts = []tier.Fact{{Epoch: 1, Hole: &tier.Hole{}}}
		}, []Kind{KindManifest}},
	} {
		l, s := archived()
		tc.change(l, s)
		got, err := Manifest(t.Context(), s, l)
		if err != nil || !slices.Equal(kinds(got), tc.want) {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

// TestEntriesAndCheckpoints: each is looked at, though another would serve in its place.
func TestEntriesAndCheckpoints(t *testing.T) {
	t.Parallel()
	start := tier.Offset(5)
	other := tier.Offset(6)
	for name, tc := range map[string]struct {
		change func(*Log, *shelf)
		want   string // kinds and objects of what is found
	}{
		"right":               {func(*Log, *shelf) {}, ""},
		"the copy's is lost":  {func(_ *Log, s *shelf) { delete(s.entries, 0) }, "manifest entry 0"},
		"the start's is lost": {func(_ *Log, s *shelf) { delete(s.entries, 1) }, "manifest entry 1"},
		"another start": {func(_ *Log, s *shelf) {
			s.entries[1] = tier.Fact{Position: 1, Start: &other}
		}, "manifest entry 1"},
		"of another copy": {func(_ *Log, s *shelf) { s.entries[0] = tier.Fact{} }, "manifest entry 0"},
		"not published yet": {func(l *Log, s *shelf) {
			delete(s.entries, 1)
			l.Unpublished = []tier.Position{1}
		}, ""},
		"a block is lost": {func(_ *Log, s *shelf) { delete(s.blocks, "L1 64") }, "manifest L1 64"},
		"a high one is":   {func(_ *Log, s *shelf) { delete(s.blocks, "L2 0") }, "manifest L2 0"},
		"one below it is": {func(_ *Log, s *shelf) { delete(s.blocks, "L1 3") }, ""},
		"a block lacks one": {func(_ *Log, s *shelf) {
			s.blocks["L2 0"] = s.blocks["L2 0"][1:]
		}, "manifest L2 0"},
	} {
		l, s := archived()
		fact := tier.Fact{Position: 1, Start: &start}
		l.Facts, s.facts = append(l.Facts, fact), append(s.facts, fact)
		s.entries[1] = fact
		l.Checkpointed, l.Positions = []uint64{65, 1}, 2
		s.blocks = map[string][]tier.Fact{"L1 3": nil, "L1 64": nil, "L2 0": l.Facts}
		tc.change(l, s)
		c := l.Copies()[0]
		found, err := Manifest(t.Context(), s, l)
		more, errEntry := Entry(t.Context(), s, l, &c)
		var got []string
		for _, f := range append(found, more...) {
			got = append(got, string(f.Kind)+" "+f.Object)
		}
		if err = errors.Join(err, errEntry); err != nil || strings.Join(got, ", ") != tc.want {
			t.Errorf("%s: %q %v, want %q", name, got, err, tc.want)
		}
	}
}

func TestGaps(t *testing.T) {
	t.Parallel()
	l, _ := archived()
	l.Copied = 60
	l.Holes = []tier.Hole{{Range: tier.Range{Base: 30, Next: 40}, Cause: tier.HoleSourceGone}}
	var texts []string
	for _, f := range l.Gaps() {
		texts = append(texts, fmt.Sprintf("%s %s %v", f.Kind, f.Range, f.Notice))
	}
	want := "hole [30, 40) true, gap [20, 30) false, gap [40, 60) false"
	if got := strings.Join(texts, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	l.Counted = append(l.Counted, tier.Counted{Range: tier.Range{Base: 25, Next: 33}},
		tier.Counted{Range: tier.Range{Base: 36, Next: 50}})
	texts = nil
	for _, f := range l.Gaps() { // what a hole had may be copied after all
		texts = append(texts, fmt.Sprintf("%s %s", f.Kind, f.Range))
	}
	if got := strings.Join(texts, ", "); got != "hole [33, 36), gap [20, 25), gap [50, 60)" {
		t.Errorf("copied after all: %s", got)
	}
	if l.Start = 60; len(l.Gaps()) > 0 {
		t.Errorf("below the log start: %+v", l.Gaps())
	}
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	const age = tier.Time(100)
	l, s := archived()
	l.Attempts = []tier.AttemptID{{2}}
	other := tier.LogID{Table: "gone", Name: "0"}
	s.others = []tier.StoredObject{
		{Key: "0.log", Log: orders, Attempt: tier.AttemptID{1}, Modified: now},
		{Key: "its entry", Log: orders, Attempt: tier.AttemptID{1}, Entry: true, Modified: now},
		{Key: "beside it", Log: orders, Attempt: tier.AttemptID{1}, Modified: now - 2*age - 1},
		{Key: "under way", Log: orders, Attempt: tier.AttemptID{2}},
		{Key: "a start", Log: orders, Entry: true},
		{Key: "a block", Log: orders, Checkpoint: true},
		{Key: "young", Log: orders, Attempt: tier.AttemptID{3}, Modified: now - age},
		{Key: "old", Log: orders, Attempt: tier.AttemptID{3}, Modified: now - 2*age - 1},
		{Key: "timeless", Log: orders, Attempt: tier.AttemptID{4}},
		{Key: "of no log", Log: other, Checkpoint: true, Modified: now},
	}
	list := func(of func(tier.LogID) bool) string {
		got, err := Orphans(t.Context(), s, []*Log{l}, now, age, of)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range got {
			out = append(out, fmt.Sprintf("%s %v", f.Object, f.Notice))
		}
		return strings.Join(out, ", ")
	}
	want := "beside it false, young true, old false, timeless false, of no log true"
	if got := list(func(tier.LogID) bool { return true }); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := list(func(id tier.LogID) bool { return id == other }); got != "of no log true" {
		t.Errorf("of the other: %s", got)
	}
}

func TestASubset(t *testing.T) {
	t.Parallel()
	for fraction, want := range map[float64][2]int{0: {0, 0}, 0.05: {20, 90}, 0.5: {440, 560},
		1: {1000, 1000}} {
		n := 0
		for i := range 1000 {
			if Chosen(&tier.Copy{Attempt: tier.AttemptID{byte(i), byte(i >> 8)}}, fraction, 7) {
				n++
			}
		}
		if n < want[0] || n > want[1] {
			t.Errorf("%v of 1000: %d", fraction, n)
		}
	}
}
