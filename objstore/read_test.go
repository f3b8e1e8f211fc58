package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/fault"
	"github.com/tierd/tierd/runtime/tier"
)

// TestReadFileGivesExactlyWhatIsThere, in as many buffers as one likes, or an error.
func TestReadFileGivesExactlyWhatIsThere(t *testing.T) {
	t.Parallel()
	content := noise(1 << 20)
	k := file(0, "f")
	b := newBench(t)
	b.mem.Put(fileKey(t, b.Store, k), content)
	for _, r := range [][]int{{0, 1 << 20}, {0, 1}, {5, 300_000, 0, 17, 700_000}, {1<<20 - 1, 1},
		{9}} {
		var bufs [][]byte
		for _, n := range r[1:] {
			bufs = append(bufs, make([]byte, n))
		}
		if err := b.ReadFile(t.Context(), k, int64(r[0]), bufs...); err != nil {
			t.Errorf("%v: %v", r, err)
		}
		got := bytes.Join(bufs, nil)
		if !bytes.Equal(got, content[r[0]:r[0]+len(got)]) {
			t.Errorf("%v: wrong bytes", r)
		}
	}
	buf := make([]byte, 100)
	if err := b.ReadFile(t.Context(), k, 1<<20-50, buf); err == nil {
		t.Error("bytes beyond the end were read")
	}
	if err := b.ReadFile(t.Context(), k, -1, buf); err == nil {
		t.Error("bytes before the beginning were read")
	}
	if err := b.ReadFile(t.Context(), file(0, "g"), 0, buf); !errors.Is(err, tier.ErrVanished) {
		t.Errorf("a missing object: %v", err)
	}
	for name, mangle := range map[string]func([]byte) []byte{"short": fault.Cut(99),
		"long": fault.Pad(1)} {
		b.faults.SetHook(fault.On(fault.OpGetRange, fault.Effect{Mangle: mangle}))
		if err := b.ReadFile(t.Context(), k, 0, buf); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// mute is a store that takes requests and never answers.
type mute struct{ thanos.Bucket }

func (mute) GetRange(ctx context.Context, _ string, _, _ int64) (io.ReadCloser, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("get: %w", ctx.Err())
}

// drip is one that begins an answer and never ends it.
type drip struct{ thanos.Bucket }

func (drip) GetRange(ctx context.Context, _ string, _, _ int64) (io.ReadCloser, error) {
	r, w := io.Pipe()
	context.AfterFunc(ctx, func() { _ = w.CloseWithError(ctx.Err()) })
	go func() { _, _ = w.Write(make([]byte, 3)) }()
	return r, nil
}

// TestAReadHasAnEnd, though nobody gave it one: it would hold its place among the readers for ever.
func TestAReadHasAnEnd(t *testing.T) {
	t.Parallel()
	mem := fault.NewMem(time.Now)
	for name, bucket := range map[string]thanos.Bucket{"mute": mute{mem}, "drip": drip{mem}} {
		s, err := New(bucket, ledger)
		if err != nil {
			t.Fatal(err)
		}
		s.readTimeout = 20 * time.Millisecond
		err = s.ReadFile(t.Context(), file(0, "f"), 0, make([]byte, 100))
		if !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		s.readTimeout = time.Hour
		if err := s.ReadFile(ctx, file(0, "f"), 0, make([]byte, 100)); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("%s, by the caller's end: %v", name, err)
		}
		cancel()
	}
}
