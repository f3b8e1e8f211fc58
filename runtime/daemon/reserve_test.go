package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tierd/tierd/runtime/api"
)

// TestReserve: it is given up when the disk is nearly full, and taken again when there is room.
func TestReserve(t *testing.T) {
	t.Parallel()
	r := openReserve(t.TempDir())
	for _, step := range []struct {
		free    int64
		changed bool
		held    bool
	}{
		{reserveBytes, false, false},
		{5 * reserveBytes, true, true},
		{reserveBytes, false, true},
		{reserveBytes/2 - 1, true, false},
		{reserveBytes, false, false},
		{5 * reserveBytes, true, true},
	} {
		changed, err := r.tend(step.free)
		if err != nil || changed != step.changed || r.held != step.held {
			t.Fatalf("%d bytes free: changed %v, held %v, %v; want %v, %v", step.free, changed, r.held,
				err, step.changed, step.held)
		}
	}
	if again := openReserve(filepath.Dir(r.path)); !again.held {
		t.Error("the reserve is not found after a restart")
	}
}

// pretend is a disk of data_dir whose space is what a test says.
type pretend struct{ free atomic.Int64 }

func (p *pretend) disk(string) (used, free int64, err error) { return 0, p.free.Load(), nil }

// reserved is the size of the reserve on disk, in bytes; 0 where there is none.
func (s *site) reserved() int64 {
	s.t.Helper()
	info, err := os.Lstat(filepath.Join(s.dir, "data", "reserve"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Size()
}

// TestAFullDiskIsEmptied: a running daemon gives the reserve up, says so, goes on to copy and to
// delete, and takes the reserve again when there is room.
func TestAFullDiskIsEmptied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var p pretend
	p.free.Store(5 * reserveBytes)
	opts := s.options()
	opts.Disk = p.disk
	d := s.run(opts)
	s.until("the reserve is held", func() bool { return s.reserved() == reserveBytes })
	p.free.Store(reserveBytes/2 - 1)
	s.until("the reserve is released", func() bool { return s.reserved() == 0 })
	s.until("it is said", func() bool {
		return strings.Contains(s.log.String(), "the disk of data_dir is full: the reserve was released")
	})
	s.segments("orders/0", 2)
	s.until("what is copied is deleted", func() bool { return s.local("orders/0") == 1 })
	if n := s.reserved(); n != 0 {
		t.Errorf("a reserve of %d bytes was taken from a full disk", n)
	}
	p.free.Store(5 * reserveBytes)
	s.until("the reserve is held again", func() bool { return s.reserved() == reserveBytes })
	if err := d.stop(); err != nil {
		t.Error(err)
	}
}

// TestAFullDiskEndsTheProcess: ledger and deletion log did not get their record to the disk. The
// error names the file, the reason and what to do, and the next start has the reserve's room,
// whatever the disk says of its own.
func TestAFullDiskEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		s := newSite(t)
		var p pretend
		p.free.Store(5 * reserveBytes)
		opts := s.options()
		opts.Disk = p.disk
		d := s.run(opts)
		s.until("the reserve is held", func() bool { return s.reserved() == reserveBytes })
		data := filepath.Join(s.dir, "data")
		file := filepath.Join(data, ledgerFile)
		d.Backend.(*Daemon).die(fmt.Errorf("ledger: %w", &fs.PathError{Op: "write", Path: file,
			Err: cause}))
		s.until("it ends", func() bool { return strings.Contains(s.log.String(), "msg=stopping") })
		err := d.stop()
		full := cause != syscall.EIO
		hint := "the disk of data_dir " + data + " is full: make room on it"
		if !errors.Is(err, cause) || !strings.Contains(err.Error(), file) ||
			strings.Contains(err.Error(), hint) != full {
			t.Errorf("%v: %v", cause, err)
		}
		if n := s.reserved(); n > 0 == full {
			t.Errorf("%v: a reserve of %d bytes", cause, n)
		}
		s.segments("orders/0", 1)
		if r, err := s.once(s.options()); err != nil || r.DeletedSegments != 1 {
			t.Errorf("%v: the next start: %+v %v", cause, r, err)
		}
	}
}

// TestRoomIsWantedInDataDir: what another disk lacks is nothing to be said of this one.
func TestRoomIsWantedInDataDir(t *testing.T) {
	t.Parallel()
	at := func(path string, err error) error {
		return fmt.Errorf("x: %w", &fs.PathError{Op: "write", Path: path, Err: err})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{at("/data/ledger.db", syscall.ENOSPC), true},
		{at("/data", syscall.ENOSPC), true},
		{at("/data/audit/audit-000001.jsonl", syscall.EDQUOT), true},
		{at("/data/ledger.db", syscall.EIO), false},
		{at("/data2/ledger.db", syscall.ENOSPC), false},
		{at("/bucket/x", syscall.ENOSPC), false},
		{syscall.ENOSPC, false},
		{api.Errorf(api.CodeRefused, "no"), false},
	} {
		got := roomWanted(c.err, "/data")
		if changed := got != c.err; changed != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v became %v, want a hint: %v", c.err, got, c.want)
		}
	}
}
