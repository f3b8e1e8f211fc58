package fault

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"
)

func newMem() *Mem { return NewMem(func() time.Time { return time.Unix(100, 0) }) }

func put(t *testing.T, b thanos.Bucket, key, content string) error {
	t.Helper()
	return b.Upload(t.Context(), key, strings.NewReader(content))
}

func get(t *testing.T, b thanos.Bucket, key string) (string, error) {
	t.Helper()
	r, err := b.Get(t.Context(), key)
	if err != nil {
		return "", err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	data, err := io.ReadAll(r)
	return string(data), err
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	t.Run("mem", func(t *testing.T) { thanos.AcceptanceTest(t, newMem()) })
	t.Run("wrapped", func(t *testing.T) { thanos.AcceptanceTest(t, Wrap(newMem(), nil)) })
	t.Run("wrapped thanos", func(t *testing.T) {
		thanos.AcceptanceTest(t, Wrap(thanos.NewInMemBucket(), nil))
	})
}

func TestMemIsStrict(t *testing.T) {
	t.Parallel()
	m := newMem()
	if err := put(t, m, "a/b/c", "x"); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"", "/a", "a//b", "a/./b", "../a", "a/", "a/b", "a/b/c/d",
		strings.Repeat("k", 1025)} {
		if err := put(t, m, key, "x"); err == nil {
			t.Errorf("upload of key %q: no error", key)
		}
	}
	short := thanos.ObjectSizerReadCloser{
		ReadCloser: io.NopCloser(strings.NewReader("four")),
		Size:       func() (int64, error) { return 5, nil },
	}
	if err := m.Upload(t.Context(), "short", short); err == nil {
		t.Error("an upload of fewer bytes than announced: no error")
	}
	if err := m.Upload(t.Context(), "unsized", io.MultiReader(strings.NewReader("x"))); err == nil {
		t.Error("an upload of unknown size: no error")
	}
	for _, r := range [][2]int64{{1, 1}, {-1, 1}, {0, 0}, {0, -2}} {
		if _, err := m.GetRange(t.Context(), "a/b/c", r[0], r[1]); err == nil {
			t.Errorf("%d bytes at %d of an object of one byte: no error", r[1], r[0])
		}
	}
	if err := m.Delete(t.Context(), "a/b"); !m.IsObjNotFoundErr(err) {
		t.Errorf("deleting what is not there: %v", err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Upload(canceled, "late", strings.NewReader("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("upload with a canceled context: %v", err)
	}
	if got := m.Keys(); !slices.Equal(got, []string{"a/b/c"}) {
		t.Errorf("keys %v", got)
	}
	// Once the object is gone, so is its directory.
	m.Remove("a/b/c")
	if err := put(t, m, "a", "x"); err != nil {
		t.Error(err)
	}
}

func TestMemTakesTheTimeFromItsClock(t *testing.T) {
	t.Parallel()
	m := newMem()
	if err := put(t, m, "k", "x"); err != nil {
		t.Fatal(err)
	}
	a, err := m.Attributes(t.Context(), "k")
	if err != nil || !a.LastModified.Equal(time.Unix(100, 0)) || a.Size != 1 {
		t.Errorf("attributes %+v, %v", a, err)
	}
}

var errBoom = errors.New("boom")

func TestUploadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		effect Effect
		err    error
		stored string // "-" for nothing
	}{
		{"none", Effect{}, nil, "content"},
		{"fails", Effect{Err: errBoom}, errBoom, "-"},
		{"fails with effect", Effect{Err: errBoom, Applied: true}, errBoom, "content"},
		{"cut short, reported", Effect{Err: errBoom, Mangle: Cut(3)}, errBoom, "con"},
		{"cut short, not reported", Effect{Mangle: Cut(3)}, nil, "con"},
		{"rotten", Effect{Mangle: Flip(0)}, nil, "bontent"},
		{"rotten at the end", Effect{Mangle: Flip(-1)}, nil, "contenu"},
		{"late", Effect{Err: context.DeadlineExceeded, Late: true}, context.DeadlineExceeded, "-"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMem()
			b := Wrap(m, On(OpUpload, test.effect))
			if err := put(t, b, "k", "content"); !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			got, ok := m.Object("k")
			if !ok {
				got = []byte("-")
			}
			if string(got) != test.stored {
				t.Errorf("stored %q, want %q", got, test.stored)
			}
		})
	}
}

func TestReadFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		effect Effect
		err    error
		got    string
	}{
		{"fails", Effect{Err: errBoom}, errBoom, ""},
		{"short", Effect{Mangle: Cut(3)}, nil, "con"},
		{"long", Effect{Mangle: Pad(1)}, nil, "content\x00"},
		{"wrong", Effect{Mangle: Flip(0)}, nil, "bontent"},
		{"breaks off", Effect{Mangle: Cut(3), Err: errBoom}, errBoom, "con"},
		{"flips what is not there", Effect{Mangle: Flip(99)}, nil, "content"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := Wrap(newMem(), On(OpGet, test.effect))
			if err := put(t, b, "k", "content"); err != nil {
				t.Fatal(err)
			}
			got, err := get(t, b, "k")
			if got != test.got || !errors.Is(err, test.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.got, test.err)
			}
		})
	}
}

func TestLateUploadLands(t *testing.T) {
	t.Parallel()
	b := Wrap(newMem(), func(op Op) Effect {
		return Effect{Err: context.DeadlineExceeded, Late: op.Key == "late"}
	})
	if err := put(t, b, "late", "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	b.SetHook(nil)
	if _, err := get(t, b, "late"); !b.IsObjNotFoundErr(err) {
		t.Errorf("before it landed: %v", err)
	}
	if late := b.Late(); len(late) != 1 || late[0].Key != "late" {
		t.Fatalf("under way: %v", late)
	}
	if err := b.Land(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, b, "late"); got != "x" || err != nil {
		t.Errorf("after it landed: %q, %v", got, err)
	}
	if err := b.Land(t.Context(), 0); err == nil {
		t.Error("landed twice")
	}
}

// TestTakesEffectTwice: what takes effect at once lands once more, whatever became of its object
// meanwhile.
func TestTakesEffectTwice(t *testing.T) {
	t.Parallel()
	for _, e := range []Effect{{Twice: true}, {Twice: true, Err: errBoom, Applied: true}} {
		m := newMem()
		b := Wrap(m, On(OpUpload, e))
		if err := put(t, b, "k", "old"); !errors.Is(err, e.Err) {
			t.Fatal(err)
		}
		b.SetHook(On(OpDelete, e))
		if got, _ := m.Object("k"); string(got) != "old" {
			t.Fatalf("at once: %q", got)
		}
		if err := b.Delete(t.Context(), "k"); !errors.Is(err, e.Err) || len(m.Keys()) > 0 {
			t.Fatalf("%v, %v left", err, m.Keys())
		}
		late := b.Late()
		if len(late) != 2 || !late[0].Again || late[0].Kind != OpUpload || late[1].Kind != OpDelete {
			t.Fatalf("under way: %v", late)
		}
		for i, left := range []int{1, 0} {
			if err := b.Land(t.Context(), 0); err != nil || len(m.Keys()) != left {
				t.Errorf("landing %d: %v, %v", i, err, m.Keys())
			}
		}
	}
	b := Wrap(newMem(), On(OpUpload, Effect{Twice: true, Err: errBoom}))
	if err := put(t, b, "k", "x"); !errors.Is(err, errBoom) || len(b.Late()) > 0 {
		t.Errorf("without effect: %v, %v", err, b.Late())
	}
}

func TestLateDeletionLands(t *testing.T) {
	t.Parallel()
	m := newMem()
	b := Wrap(m, On(OpDelete, Effect{Err: errBoom, Late: true}))
	m.Put("k", []byte("x"))
	if err := b.Delete(t.Context(), "k"); !errors.Is(err, errBoom) || len(m.Keys()) != 1 {
		t.Errorf("given up: %v, %v left", err, m.Keys())
	}
	m.Put("other", nil)
	if err := b.Land(t.Context(), 0); err != nil || !slices.Equal(m.Keys(), []string{"other"}) {
		t.Errorf("landed: %v, %v left", err, m.Keys())
	}
	b.SetHook(On(OpDelete, Effect{Late: true}))
	if err := b.Delete(t.Context(), "gone"); err != nil {
		t.Error(err)
	}
	if err := b.Land(t.Context(), 0); err != nil {
		t.Errorf("a deletion of what is not there: %v", err)
	}
}

func TestListLag(t *testing.T) {
	t.Parallel()
	b := Wrap(newMem(), nil)
	for _, key := range []string{"d/1", "d/2", "d/3"} {
		if err := put(t, b, key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (names []string, err error) {
		err = b.Iter(t.Context(), "d", func(name string) error {
			names = append(names, name)
			return nil
		})
		return names, err
	}
	hide := func(name string) bool { return name == "d/2" }
	b.SetHook(On(OpIter, Effect{Hide: hide}))
	if got, err := list(); !slices.Equal(got, []string{"d/1", "d/3"}) || err != nil {
		t.Errorf("with lag: %v, %v", got, err)
	}
	b.SetHook(On(OpIter, Effect{Hide: hide, Err: errBoom}))
	if got, err := list(); len(got) != 2 || !errors.Is(err, errBoom) {
		t.Errorf("broken off: %v, %v", got, err)
	}
	b.SetHook(On(OpIter, Effect{Err: errBoom}))
	if got, err := list(); len(got) != 0 || !errors.Is(err, errBoom) {
		t.Errorf("failed: %v, %v", got, err)
	}
}

func TestDeleteFaults(t *testing.T) {
	t.Parallel()
	m := newMem()
	b := Wrap(m, On(OpDelete, Effect{Err: errBoom}))
	m.Put("k", []byte("x"))
	if err := b.Delete(t.Context(), "k"); !errors.Is(err, errBoom) || len(m.Keys()) != 1 {
		t.Errorf("failing: %v, %v left", err, m.Keys())
	}
	b.SetHook(On(OpDelete, Effect{Err: errBoom, Applied: true}))
	if err := b.Delete(t.Context(), "k"); !errors.Is(err, errBoom) || len(m.Keys()) != 0 {
		t.Errorf("failing with effect: %v, %v left", err, m.Keys())
	}
}

func TestHooks(t *testing.T) {
	t.Parallel()
	b := Wrap(newMem(), Storm(3))
	var status StatusError
	for i := range 4 {
		_, err := b.Exists(t.Context(), "k")
		if storm := i < 3; errors.As(err, &status) != storm {
			t.Errorf("call %d of a storm of 3: %v", i, err)
		}
	}
	nth := &Nth{N: 1, Effect: Effect{Err: ErrDenied}}
	b.SetHook(nth.Hook)
	for i := range 3 {
		if _, err := b.Attributes(t.Context(), "k"); b.IsAccessDeniedErr(err) != (i == 1) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if !nth.Fired() || (&Nth{N: 0}).Fired() {
		t.Error("Fired is wrong")
	}
	if b.Calls() != 7 {
		t.Errorf("%d calls counted, want 7", b.Calls())
	}
}
