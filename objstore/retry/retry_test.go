package retry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/body"
	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// clock is a time that only sleeping moves.
type clock struct {
	at    time.Time
	slept []time.Duration
}

func (c *clock) now() time.Time { return c.at }

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.slept = append(c.slept, d)
	c.at = c.at.Add(d)
	return ctx.Err()
}

func (c *clock) options() Options {
	return Options{
		Attempts: 5, Base: time.Second, Max: 5 * time.Second, Total: time.Hour,
		Now: c.now, Sleep: c.sleep, Rand: func() float64 { return 0.5 },
	}
}

// bench is a bucket in memory with faults before it and repetition before those.
type bench struct {
	*clock
	mem    *fault.Mem
	faults *fault.Bucket
	*Bucket
}

func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	c := &clock{at: time.Unix(0, 0)}
	mem := fault.NewMem(c.now)
	faults := fault.Wrap(mem, nil)
	opts := c.options()
	for _, f := range change {
		f(&opts)
	}
	b, err := Wrap(faults, opts)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{c, mem, faults, b}
}

func (b *bench) put(t *testing.T, content string) error {
	t.Helper()
	return b.Upload(t.Context(), "k", body.New(strings.NewReader(content), int64(len(content))))
}

func (b *bench) read(t *testing.T) (string, error) {
	t.Helper()
	r, err := b.Get(t.Context(), "k")
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
	thanos.AcceptanceTest(t, newBench(t).Bucket)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"attempts": func(o *Options) { o.Attempts = 0 },
		"base":     func(o *Options) { o.Base = 0 },
		"max":      func(o *Options) { o.Max = o.Base - 1 },
		"total":    func(o *Options) { o.Total = 0 },
		"now":      func(o *Options) { o.Now = nil },
		"sleep":    func(o *Options) { o.Sleep = nil },
		"rand":     func(o *Options) { o.Rand = nil },
	} {
		opts := (&clock{}).options()
		change(&opts)
		if _, err := Wrap(thanos.NewInMemBucket(), opts); err == nil {
			t.Errorf("wrong %s: no error", name)
		}
	}
}

func TestStormPasses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.faults.SetHook(fault.Storm(4))
	if err := b.put(t, "content"); err != nil {
		t.Fatal(err)
	}
	// Half of 1, 2, 4 seconds, then half of the maximum of 5.
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second,
		2500 * time.Millisecond}
	if !slices.Equal(b.slept, want) {
		t.Errorf("paused %v, want %v", b.slept, want)
	}
	if got, _ := b.mem.Object("k"); string(got) != "content" {
		t.Errorf("stored %q", got)
	}
}

func TestStormEndsInAnError(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*bench) error{
		"upload":     func(b *bench) error { return b.put(t, "content") },
		"get":        func(b *bench) error { _, err := b.read(t); return err },
		"get range":  func(b *bench) error { _, err := b.GetRange(t.Context(), "k", 0, 1); return err },
		"attributes": func(b *bench) error { _, err := b.Attributes(t.Context(), "k"); return err },
		"exists":     func(b *bench) error { _, err := b.Exists(t.Context(), "k"); return err },
		"iter": func(b *bench) error {
			return b.Iter(t.Context(), "", func(string) error { return nil })
		},
		"iter with attributes": func(b *bench) error {
			return b.IterWithAttributes(t.Context(), "",
				func(thanos.IterObjectAttributes) error { return nil })
		},
	}
	for name, call := range calls {
		b := newBench(t)
		b.faults.SetHook(fault.Storm(1 << 30))
		err := call(b)
		var status fault.StatusError
		if !errors.As(err, &status) || !strings.Contains(err.Error(), "given up after 5 attempts in 6s") {
			t.Errorf("%s: %v", name, err)
		}
		if b.faults.Calls() != 5 {
			t.Errorf("%s: %d calls, want 5", name, b.faults.Calls())
		}
	}
}

func TestTotalTimeBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Total = 1700 * time.Millisecond })
	b.faults.SetHook(fault.Storm(1 << 30))
	// Pauses of 0.5 s and 1 s fit; 2 s more do not.
	if err := b.put(t, "x"); err == nil || b.faults.Calls() != 3 {
		t.Errorf("%v after %d calls, want 3", err, b.faults.Calls())
	}
}

func TestHugeAttemptCountDoesNotOverflow(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *Options) { o.Attempts, o.Total = 100, 1000*time.Hour })
	b.faults.SetHook(fault.Storm(99))
	if err := b.put(t, "x"); err != nil {
		t.Fatal(err)
	}
	for i, d := range b.slept {
		if d <= 0 || d > 5*time.Second {
			t.Errorf("pause %d is %s", i, d)
		}
	}
}

func TestAnswersAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, answer := range []error{fault.ErrNotFound, fault.ErrDenied, context.Canceled,
		thanos.ErrOptionNotSupported} {
		b := newBench(t)
		b.faults.SetHook(func(fault.Op) fault.Effect { return fault.Effect{Err: answer} })
		if _, err := b.Attributes(t.Context(), "k"); err != answer || b.faults.Calls() != 1 {
			t.Errorf("%v: got %v after %d calls", answer, err, b.faults.Calls())
		}
	}
	b := newBench(t)
	if _, err := b.read(t); !b.IsObjNotFoundErr(err) || b.faults.Calls() != 1 {
		t.Errorf("reading what is not there: %v after %d calls", err, b.faults.Calls())
	}
}

func TestDeletionsAreNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.faults.SetHook(fault.Storm(1))
	if err := b.Delete(t.Context(), "k"); err == nil || b.faults.Calls() != 1 {
		t.Errorf("%v after %d calls, want an error after 1", err, b.faults.Calls())
	}
}

// An upload past its deadline may still take effect: whoever asked for it has to look.
func TestUploadPastItsDeadlineIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	late := fault.Effect{Err: context.DeadlineExceeded, Late: true}
	b.faults.SetHook(fault.On(fault.OpUpload, late))
	if err := b.put(t, "x"); !errors.Is(err, context.DeadlineExceeded) || b.faults.Calls() != 1 {
		t.Errorf("%v after %d calls", err, b.faults.Calls())
	}
	// A read past the deadline of one call has done nothing, and is.
	nth := &fault.Nth{Effect: fault.Effect{Err: context.DeadlineExceeded}}
	b.faults.SetHook(nth.Hook)
	if _, err := b.Exists(t.Context(), "k"); err != nil {
		t.Errorf("reading: %v", err)
	}
}

func TestUploadBeginsAnew(t *testing.T) {
	t.Parallel()
	const content = "each attempt reads some of it before it fails"
	b := newBench(t)
	b.faults.SetHook(fault.Storm(3))
	if err := b.put(t, content); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.mem.Object("k"); string(got) != content {
		t.Errorf("stored %q", got)
	}
}

func TestUploadThatTookEffectIsRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	nth := &fault.Nth{Effect: fault.Effect{Err: fault.StatusError{Code: 500}, Mangle: fault.Cut(2)}}
	b.faults.SetHook(nth.Hook)
	if err := b.put(t, "content"); err != nil {
		t.Fatal(err)
	}
	if got, _ := b.mem.Object("k"); string(got) != "content" {
		t.Errorf("stored %q", got)
	}
}

func TestBodyThatCannotBeReadTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.faults.SetHook(fault.Storm(1))
	once := io.LimitReader(strings.NewReader("x"), 1)
	if err := b.Upload(t.Context(), "k", once); err == nil || b.faults.Calls() != 1 {
		t.Errorf("%v after %d calls, want an error after 1", err, b.faults.Calls())
	}
}

func TestBrokenFileIsNotRepeated(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	shrunk := body.New(strings.NewReader("short"), 10)
	if err := b.Upload(t.Context(), "k", shrunk); !errors.Is(err, tier.ErrChanged) {
		t.Errorf("error %v, want ErrChanged", err)
	}
	if b.faults.Calls() != 1 || len(b.mem.Keys()) != 0 {
		t.Errorf("%d calls, stored %v", b.faults.Calls(), b.mem.Keys())
	}
}

func TestStreamGoesOnWhereItBrokeOff(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("k", []byte("0123456789"))
	torn := fault.Effect{Mangle: fault.Cut(3), Err: io.ErrUnexpectedEOF}
	var asked [][2]int64
	b.faults.SetHook(func(op fault.Op) fault.Effect {
		asked = append(asked, [2]int64{op.Off, op.Len})
		if op.Count < 2 {
			return torn
		}
		return fault.Effect{}
	})
	if got, err := b.read(t); got != "0123456789" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if want := [][2]int64{{0, 0}, {3, 7}, {6, 4}}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}

func TestStreamThatKeepsBreaking(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("k", bytes.Repeat([]byte("x"), 100))
	b.faults.SetHook(func(fault.Op) fault.Effect {
		return fault.Effect{Mangle: fault.Cut(1), Err: io.ErrUnexpectedEOF}
	})
	got, err := b.read(t)
	if len(got) != 5 || !errors.Is(err, io.ErrUnexpectedEOF) || b.faults.Calls() != 5 {
		t.Errorf("%d bytes, %v after %d calls", len(got), err, b.faults.Calls())
	}
}

func TestStreamThatBreaksAtItsEndIsWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("k", []byte("whole"))
	b.faults.SetHook(func(fault.Op) fault.Effect {
		return fault.Effect{Mangle: fault.Cut(5), Err: io.ErrUnexpectedEOF}
	})
	if got, err := b.read(t); got != "whole" || err != nil || b.faults.Calls() != 1 {
		t.Errorf("got %q, %v after %d calls", got, err, b.faults.Calls())
	}
}

// Some client announces the size of the object where that of the range is meant.
func TestStreamOfARangeEndsWithTheRange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("k", []byte("0123456789"))
	b.faults.SetHook(func(fault.Op) fault.Effect {
		return fault.Effect{Mangle: fault.Cut(5), Err: io.ErrUnexpectedEOF}
	})
	b.Bucket.Bucket = announcing{b.faults, 10}
	r, err := b.GetRange(t.Context(), "k", 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "01234" || err != nil || b.faults.Calls() != 1 {
		t.Errorf("got %q, %v after %d calls", got, err, b.faults.Calls())
	}
	if size, err := thanos.TryToGetSize(r); size != 10 || err != nil {
		t.Errorf("announces %d, %v, unlike its client", size, err)
	}
	b.Bucket.Bucket = announcing{b.faults, -1}
	if r, err = b.GetRange(t.Context(), "k", 0, 5); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); string(got) != "01234" || err != nil {
		t.Errorf("of unknown size: got %q, %v", got, err)
	}
	if _, err := thanos.TryToGetSize(r); err == nil {
		t.Error("announces a size that it does not know")
	}
}

// announcing announces size for whatever is read, or nothing if size is negative.
type announcing struct {
	thanos.Bucket
	size int64
}

func (a announcing) GetRange(ctx context.Context, key string, off, n int64) (
	io.ReadCloser, error) {
	r, err := a.Bucket.GetRange(ctx, key, off, n)
	return thanos.ObjectSizerReadCloser{ReadCloser: r, Size: func() (int64, error) {
		if a.size < 0 {
			return 0, errors.New("unknown")
		}
		return a.size, nil
	}}, err
}

func TestStreamWhoseObjectVanishes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("k", []byte("0123456789"))
	b.faults.SetHook(func(fault.Op) fault.Effect {
		b.mem.Remove("k")
		b.faults.SetHook(nil)
		return fault.Effect{}
	})
	if _, err := b.read(t); !b.IsObjNotFoundErr(err) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestListingIsRepeatedOnlyBeforeTheFirstName(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mem.Put("1", nil)
	b.mem.Put("2", nil)
	list := func() (names []string, err error) {
		err = b.Iter(t.Context(), "", func(name string) error {
			names = append(names, name)
			return nil
		})
		return names, err
	}
	b.faults.SetHook(fault.Storm(2))
	if got, err := list(); len(got) != 2 || err != nil {
		t.Errorf("failing before the first name: %v, %v", got, err)
	}
	b.faults.SetHook(fault.On(fault.OpIter, fault.Effect{
		Hide: func(name string) bool { return name == "2" },
		Err:  fault.StatusError{Code: 503},
	}))
	if got, err := list(); len(got) != 1 || err == nil {
		t.Errorf("failing after the first name: %v, %v", got, err)
	}
}

func TestContextEndsThePauses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, func(o *Options) {
		o.Sleep = func(ctx context.Context, _ time.Duration) error {
			cancel()
			return ctx.Err()
		}
	})
	b.faults.SetHook(fault.Storm(1 << 30))
	_, err := b.Exists(ctx, "k")
	var status fault.StatusError
	if !errors.Is(err, context.Canceled) || !errors.As(err, &status) || b.faults.Calls() != 1 {
		t.Errorf("%v after %d calls", err, b.faults.Calls())
	}
	if _, err := b.Exists(ctx, "k"); err == nil || b.faults.Calls() != 2 {
		t.Errorf("with a context that is over: %v after %d calls", err, b.faults.Calls())
	}
}

func TestSleep(t *testing.T) {
	t.Parallel()
	if err := Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that is over: %v", err)
	}
}
