package body

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	thanos "github.com/thanos-io/objstore"
	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

func TestBodyReadsLikeAFile(t *testing.T) {
	t.Parallel()
	content := []byte(strings.Repeat("0123456789abcdef", 40))
	whole := New(bytes.NewReader(content), int64(len(content)))
	if err := iotest.TestReader(whole, content); err != nil {
		t.Error(err)
	}
	if err := iotest.TestReader(New(bytes.NewReader(nil), 0), nil); err != nil {
		t.Errorf("empty: %v", err)
	}
	cut := New(bytes.NewReader(content), 100)
	if err := iotest.TestReader(cut, content[:100]); err != nil {
		t.Errorf("the first 100 bytes: %v", err)
	}
	if cut.Err() != nil {
		t.Errorf("Err after sound reads: %v", cut.Err())
	}
}

// The size is what the whole type is for: thanos has to find it, and io.SectionReader is the proof
// that it does not find any size.
func TestThanosFindsTheSize(t *testing.T) {
	t.Parallel()
	src := strings.NewReader("eleven byte")
	size, err := thanos.TryToGetSize(New(src, 11))
	if err != nil || size != 11 {
		t.Errorf("size of a Body: %d, %v; want 11", size, err)
	}
	if _, err := thanos.TryToGetSize(io.NewSectionReader(src, 0, 11)); err == nil {
		t.Error("thanos knows the size of an io.SectionReader now: is this package still needed?")
	}
}

func TestEarlyEndIsAnError(t *testing.T) {
	t.Parallel()
	b := New(strings.NewReader("shrunk"), 10)
	got, err := io.ReadAll(b)
	if !errors.Is(err, tier.ErrChanged) || string(got) != "shrunk" {
		t.Errorf("reading: %q, %v; want ErrChanged after what is there", got, err)
	}
	if !errors.Is(b.Err(), tier.ErrChanged) {
		t.Errorf("Err: %v; want ErrChanged", b.Err())
	}
	if n, err := b.ReadAt(make([]byte, 2), 8); n != 0 || !errors.Is(err, tier.ErrChanged) {
		t.Errorf("ReadAt beyond the end of the file: %d, %v", n, err)
	}
	if again := b.Again(); again.Err() != nil {
		t.Errorf("Err of a new Body: %v", again.Err())
	}
}

func TestErrorOfTheSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("input/output error")
	b := New(readerAt(func([]byte, int64) (int, error) { return 0, broken }), 10)
	if _, err := io.ReadAll(b); !errors.Is(err, broken) {
		t.Errorf("reading: %v", err)
	}
	if !errors.Is(b.Err(), broken) {
		t.Errorf("Err: %v", b.Err())
	}
	vague := errors.New("upload did not work")
	if err := b.Blame(vague); !errors.Is(err, broken) || !errors.Is(err, vague) {
		t.Errorf("blamed: %v", err)
	}
	if err := b.Blame(nil); err != broken {
		t.Errorf("blamed for a success: %v", err)
	}
	if err := b.Blame(broken); err != broken {
		t.Errorf("blamed for what it said: %v", err)
	}
	if err := New(nil, 0).Blame(vague); err != vague {
		t.Errorf("blamed without cause: %v", err)
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

func TestOfTakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	r := strings.NewReader("0123456789")
	if _, err := io.CopyN(io.Discard, r, 4); err != nil {
		t.Fatal(err)
	}
	b, ok := Of(r)
	if !ok {
		t.Fatal("a strings.Reader can be read twice")
	}
	for range 2 {
		if got, err := io.ReadAll(b); err != nil || string(got) != "456789" {
			t.Errorf("got %q, %v", got, err)
		}
		b = b.Again()
	}
	if _, ok := Of(io.LimitReader(r, 3)); ok {
		t.Error("a LimitedReader cannot be read twice")
	}
}

func TestOfFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := Of(f)
	if !ok {
		t.Fatal("a file can be read twice")
	}
	if got, err := io.ReadAll(b); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, ok := Of(f); ok {
		t.Error("a closed file cannot be read at all")
	}
}

// dropped records which bytes were read and which were dropped.
type dropped struct {
	*bytes.Reader
	drops [][2]int64
}

func (d *dropped) DropCache(off, n int64) { d.drops = append(d.drops, [2]int64{off, off + n}) }

// Whatever the sizes of the reads, a file that was read in order is dropped as a whole, and nothing
// is dropped before it was read.
func TestDropBehind(t *testing.T) {
	t.Parallel()
	content := make([]byte, 3*dropStep+4567)
	rapid.Check(t, func(t *rapid.T) {
		size := int64(rapid.IntRange(1, len(content)).Draw(t, "size"))
		d := &dropped{Reader: bytes.NewReader(content[:size])}
		r := New(DropBehind(d, size), size)
		buf := make([]byte, rapid.IntRange(1000, 2*dropStep).Draw(t, "buffer"))
		var done tier.RangeSet
		for pos := int64(0); ; {
			n, err := r.Read(buf)
			pos += int64(n)
			for _, x := range d.drops {
				if x[1] > pos {
					t.Fatalf("dropped %v, but only %d bytes were read", x, pos)
				}
				done = done.Add(tier.Range{Base: tier.Offset(x[0]), Next: tier.Offset(x[1])})
			}
			if err == io.EOF {
				break
			}
		}
		if !done.Covers(tier.Range{Next: tier.Offset(size)}) {
			t.Fatalf("dropped %v of %d bytes", done, size)
		}
	})
	if plain := bytes.NewReader(content); DropBehind(plain, 1) != io.ReaderAt(plain) {
		t.Error("a reader that cannot drop is wrapped all the same")
	}
}
