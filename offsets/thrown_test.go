package offsets

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/tierd/tierd/runtime/tier"
)

// TestACommitThatPanics: whoever led it gets the panic, who was committed with it and who waits get
// the ledger's last word, and nobody waits for ever.
func TestACommitThatPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory([16]byte{1})
		l, err := Open(m)
		if err != nil {
			t.Fatal(err)
		}
		throw := make(chan struct{})
		m.Inject(func(uint64) Fault {
			<-throw
			panic("a bug")
		})
		errs := make(chan error, 3)
		for i := range tier.Time(3) {
			go func() {
				defer func() {
					if p := recover(); p != nil {
						errs <- fmt.Errorf("thrown: %v", p)
					}
				}()
				_, err := l.Append(t.Context(), tier.ClockSeen{At: 1 + i})
				errs <- err
			}()
			synctest.Wait()
		}
		close(throw)
		synctest.Wait()
		thrown := 0
		for range 3 {
			select {
			case err := <-errs:
				if err == nil || errors.Is(err, tier.ErrRefused) {
					t.Errorf("got %v, want the ledger's last word", err)
				} else if strings.HasPrefix(err.Error(), "thrown: ") {
					thrown++
				}
			default:
				t.Fatal("somebody waits for ever")
			}
		}
		if thrown != 1 || l.Err() == nil {
			t.Errorf("%d callers got the panic; the ledger says %v", thrown, l.Err())
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRefusedFoldNothing: a commit in which nothing changes leaves a full journal alone, since what
// it does there is undone, and would be done again by the next.
func TestRefusedFoldNothing(t *testing.T) {
	t.Parallel()
	m, _ := journaled(t)
	m.journalMax = 1
	parts := func() (n uint64) {
		err := m.Update(func(tx Tx) error {
			_, err := tx.Get([]byte("\xF00"))
			n = tx.(*recentTx).recent.parts
			return errors.Join(err, errUnchanged)
		})
		if !errors.Is(err, errUnchanged) {
			t.Fatal(err)
		}
		return n
	}
	if n := parts(); n == 0 {
		t.Error("nothing changed, and the journal was emptied for it")
	}
	put(t, m, map[string]string{"\xF00": "new"})
	if n := parts(); n != 1 {
		t.Errorf("the journal has %d parts after a commit that found it full, want its own", n)
	}
	never, _ := journaled(t)
	put(t, never, map[string]string{"\xF00": "new"})
	if got, want := contentOf(t, m), contentOf(t, never); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestGrown: that the disk is full is known also where bbolt tells it in words alone.
func TestGrown(t *testing.T) {
	t.Parallel()
	b := &Bolt{path: filepath.Join("dir", "ledger.db")}
	cause := &fs.PathError{Op: "truncate", Path: b.path, Err: syscall.EDQUOT}
	var at *fs.PathError
	err := b.grown(fmt.Errorf("file resize error: %s", cause)) // as bbolt does
	if !errors.Is(err, syscall.EDQUOT) || !errors.As(err, &at) || at.Path != b.path {
		t.Errorf("got %#v", err)
	}
	for _, same := range []error{nil, cause, errors.New("file resize error: who knows")} {
		if err := b.grown(same); err != same {
			t.Errorf("%v became %v", same, err)
		}
	}
}
