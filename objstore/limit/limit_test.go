package limit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/body"
	"github.com/tierd/tierd/objstore/fault"
)

// clock is a time that only sleeping moves.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Unix(1000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return ctx.Err()
}

func (c *clock) limiter(t *testing.T, bytesPerSecond int64) *Limiter {
	t.Helper()
	l, err := New(bytesPerSecond, c.now, c.sleep)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	c := newClock()
	thanos.AcceptanceTest(t, Wrap(fault.NewMem(c.now), c.limiter(t, 100)))
}

func TestRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	content := bytes.Repeat([]byte("0123456789"), 1000)
	l := c.limiter(t, 1000)
	mem := fault.NewMem(c.now)
	began := c.now()
	for _, key := range []string{"1", "2"} {
		r := body.New(bytes.NewReader(content), int64(len(content)))
		if err := Wrap(mem, l).Upload(t.Context(), key, r); err != nil {
			t.Fatal(err)
		}
		if got, _ := mem.Object(key); !bytes.Equal(got, content) {
			t.Errorf("object %s differs", key)
		}
	}
	// 20,000 bytes at 1,000 a second take 20 s, but for the first burst of 4 KiB.
	took := c.now().Sub(began)
	if want := 15904 * time.Millisecond; (took - want).Abs() > time.Millisecond {
		t.Errorf("two uploads took %s, want %s", took, want)
	}
}

func TestNoLimit(t *testing.T) {
	t.Parallel()
	c := newClock()
	began := c.now()
	r := c.limiter(t, 0).Reader(t.Context(), bytes.NewReader(make([]byte, 64<<20)))
	if n, err := r.ReadAt(make([]byte, 64<<20), 0); n != 64<<20 || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
	if took := c.now().Sub(began); took != 0 {
		t.Errorf("waited %s", took)
	}
}

func TestSetLimitWhileReading(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := c.limiter(t, 10<<10)
	r := l.Reader(t.Context(), bytes.NewReader(make([]byte, burstMax)))
	took := func(n int) time.Duration {
		began := c.now()
		if _, err := r.ReadAt(make([]byte, n), 0); err != nil {
			t.Fatal(err)
		}
		return c.now().Sub(began).Round(time.Millisecond)
	}
	took(burstMin) // the first burst
	if got, want := took(20<<10), 2*time.Second; got != want {
		t.Errorf("20 KiB at 10 KiB/s took %s, want %s", got, want)
	}
	if err := l.SetLimit(100 << 10); err != nil {
		t.Fatal(err)
	}
	if got, want := took(100<<10), time.Second; got != want {
		t.Errorf("100 KiB at 100 KiB/s took %s, want %s", got, want)
	}
	if err := l.SetLimit(0); err != nil {
		t.Fatal(err)
	}
	if got := took(1 << 20); got != 0 {
		t.Errorf("without limit it took %s", got)
	}
	if err := l.SetLimit(10 << 10); err != nil {
		t.Fatal(err)
	}
	took(burstMax) // at most what had been saved up
	if got, want := took(10<<10), time.Second; got != want {
		t.Errorf("10 KiB at 10 KiB/s took %s, want %s", got, want)
	}
	if err := l.SetLimit(-1); err == nil {
		t.Error("a negative limit: no error")
	}
}

func TestReadersShareTheRate(t *testing.T) {
	t.Parallel()
	c := newClock()
	l := c.limiter(t, 100<<10)
	began := c.now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r := l.Reader(t.Context(), bytes.NewReader(make([]byte, 100<<10)))
			if _, err := r.ReadAt(make([]byte, 100<<10), 0); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// Sleeps add up on this clock, so it shows at least what a real one would.
	if took := c.now().Sub(began); took < 3900*time.Millisecond {
		t.Errorf("400 KiB at 100 KiB/s took %s", took)
	}
}

func TestContextEndsTheWait(t *testing.T) {
	t.Parallel()
	c := newClock()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := New(1, c.now, func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	b := Wrap(fault.NewMem(c.now), l)
	r := body.New(bytes.NewReader(make([]byte, 2*burstMin)), 2*burstMin)
	if err := b.Upload(ctx, "k", r); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

// What a reader that gave up did not read is there for others.
func TestAbandonedWaitGivesItsBytesBack(t *testing.T) {
	t.Parallel()
	c := newClock()
	ctx, cancel := context.WithCancel(t.Context())
	giveUp := true
	l, err := New(1000, c.now, func(ctx context.Context, d time.Duration) error {
		if giveUp {
			cancel()
			return ctx.Err()
		}
		return c.sleep(ctx, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	src := bytes.NewReader(make([]byte, 3*burstMin))
	n, err := l.Reader(ctx, src).ReadAt(make([]byte, 2*burstMin), 0)
	if n != burstMin || !errors.Is(err, context.Canceled) {
		t.Fatalf("read %d, %v; want the first burst and Canceled", n, err)
	}
	giveUp = false
	began := c.now()
	if _, err := l.Reader(t.Context(), src).ReadAt(make([]byte, 1000), 0); err != nil {
		t.Fatal(err)
	}
	if took := c.now().Sub(began); took != time.Second {
		t.Errorf("1,000 bytes at 1,000 a second took %s", took)
	}
}

func TestCausesArePassedOn(t *testing.T) {
	t.Parallel()
	c := newClock()
	broken := errors.New("input/output error")
	b := Wrap(forgetful{fault.NewMem(c.now)}, c.limiter(t, 0))
	r := body.New(readerAt(func([]byte, int64) (int, error) { return 0, broken }), 3)
	if err := b.Upload(t.Context(), "k", r); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the file", err)
	}
	if err := b.Upload(t.Context(), "k", io.LimitReader(strings.NewReader("x"), 1)); err == nil {
		t.Error("a body that cannot be read at offsets: no error")
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// forgetful says of every failed upload that it failed, and no more.
type forgetful struct{ thanos.Bucket }

func (b forgetful) Upload(ctx context.Context, key string, r io.Reader,
	opts ...thanos.ObjectUploadOption) error {
	if err := b.Bucket.Upload(ctx, key, r, opts...); err != nil {
		return errors.New("upload did not work")
	}
	return nil
}

func TestNewIsChecked(t *testing.T) {
	t.Parallel()
	c := newClock()
	if _, err := New(-1, c.now, c.sleep); err == nil {
		t.Error("a negative rate: no error")
	}
	if _, err := New(1, nil, c.sleep); err == nil {
		t.Error("no clock: no error")
	}
}
