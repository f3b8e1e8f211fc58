package logdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Source reads and drops the segments of one configured source. All methods are safe for
// concurrent use.
type Source struct {
	cfg    Config
	layout layout
	locks  dirLocks
	now    atomic.Int64 // tier.Time of the last scan; Look judges by it

	scanning sync.Mutex
	folders  map[string]*folder // by directory; guarded by scanning
	branches map[string]*branch // layout fluss: directories on the way; guarded by scanning

	doubtMu sync.Mutex
	doubt   map[string]bool // directories whose remembered listing must not be used

	given given
}

// Open returns the source that cfg describes. It does not look at its directory, which may come
// and go. A source that deletes beside nobody takes its lock at the first scan that can have it.
func Open(cfg Config) (*Source, error) {
	l, err := cfg.layout()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", cfg.Name, err)
	}
	return &Source{cfg: cfg, layout: l, doubt: map[string]bool{}}, nil
}

// Close gives the lock back. It is idempotent.
func (s *Source) Close() error {
	if !s.locked() {
		return nil
	}
	return s.cfg.Lock.Unlock()
}

// Name is the configured name.
func (s *Source) Name() string { return s.cfg.Name }

// LocalDelete is the configured way to delete.
func (s *Source) LocalDelete() tier.LocalDelete { return s.cfg.LocalDelete }

// rolls reports whether it is known how the source's program rolls its segments and locks its
// directory; of plain sources nothing is.
func (s *Source) rolls() bool { return s.cfg.Layout != tier.LayoutPlain }

// locked reports whether deleting needs the lock of the source's own program.
func (s *Source) locked() bool {
	return s.rolls() && s.cfg.LocalDelete == tier.LocalDeleteUnlink
}

// Owned tells whether tierd holds the source's lock; Yes where the layout has none. A kafka or
// fluss source that is not to be deleted from is never owned.
func (s *Source) Owned() tier.Truth {
	if !s.rolls() {
		return tier.Yes
	}
	return tier.TruthOf(s.locked() && s.cfg.Lock.Held())
}

// mayDrop reports whether files may be removed from the source at all now.
func (s *Source) mayDrop() bool {
	return !s.cfg.ReadOnly && s.cfg.LocalDelete == tier.LocalDeleteUnlink && s.Owned() == tier.Yes
}

// root opens the source's directory.
func (s *Source) root() (vfs.Dir, error) {
	root, err := s.cfg.Root()
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", s.cfg.Name, err)
	}
	return root, nil
}

// distrust makes the next scan list the directory anew.
func (s *Source) distrust(dir string) {
	s.doubtMu.Lock()
	defer s.doubtMu.Unlock()
	s.doubt[dir] = true
}

// forgetDoubts forgets doubts about directories that are not among those that are there: of one
// that comes back nothing is remembered.
func (s *Source) forgetDoubts(there map[string]*folder) {
	s.doubtMu.Lock()
	defer s.doubtMu.Unlock()
	for dir := range s.doubt {
		if there[dir] == nil {
			delete(s.doubt, dir)
		}
	}
}

// doubted reports whether the directory is to be listed anew, and forgets it.
func (s *Source) doubted(dir string) bool {
	s.doubtMu.Lock()
	defer s.doubtMu.Unlock()
	doubted := s.doubt[dir]
	delete(s.doubt, dir)
	return doubted
}

// Look scans one log afresh, past every cache. Whole is false where anything of the directory
// could not be read. An error wraps tier.ErrVanished if the log is not there while its source is.
// A segment that is closed by its age is judged by the time of the last Scan.
func (s *Source) Look(ctx context.Context, id tier.LogID) (scan tier.Scan, whole bool, err error) {
	if err := ctx.Err(); err != nil {
		return tier.Scan{}, false, err
	}
	root, err := s.root()
	if err != nil {
		return tier.Scan{}, false, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	at := s.judging(root, tier.Time(s.now.Load()))
	dir, infos, err := s.locate(root, id)
	var double *doubleError
	switch {
	case errors.As(err, &double):
		scan := s.unread(id, double.a, tier.CodeDuplicateLog, err)
		return scan, false, nil
	case err != nil:
		return tier.Scan{}, false, err
	}
	scan = s.judge(s.folderOf(root, dir, id, infos), at)
	scan.Problems = append(scan.Problems, at.problems()...)
	return scan, scan.Whole, nil
}

// unread is the scan of a log that could not be read.
func (s *Source) unread(id tier.LogID, dir string, code tier.Code, err error) tier.Scan {
	return tier.Scan{Log: id, Source: s.cfg.Name, Layout: s.cfg.Layout, Dir: dir,
		Problems: []tier.Problem{problem(dir, code, err.Error())}}
}

// Stat returns the identity that the file of a segment has now; name is a base name.
func (s *Source) Stat(ctx context.Context, id tier.LogID, name string) (tier.Stat, error) {
	var stat tier.Stat
	err := s.inLog(ctx, id, name, func(root vfs.Dir, at string) error {
		info, err := root.Stat(at)
		if err == nil && !info.Regular() {
			err = fmt.Errorf("%s: %w", at, vfs.ErrNotRegular)
		}
		stat = info.Stat
		return err
	})
	return stat, err
}

// CountsBytes reports whether the offsets of the source's logs count the bytes of their files.
func (s *Source) CountsBytes() bool {
	return s.cfg.Layout == tier.LayoutPlain && s.cfg.Next == NextBaseSize
}

// LogFile is the base name of the file that holds the records of the segment with the base.
func (s *Source) LogFile(ctx context.Context, id tier.LogID, base tier.Offset) (name string,
	err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	root, err := s.root()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	_, names, err := s.names(root, id)
	if err != nil {
		return "", err
	}
	l := s.layout.outline(names)
	i, err := l.find(base)
	if err != nil {
		return "", fmt.Errorf("log %s: %w", id, err)
	}
	return l.segments[i].name, nil
}

// Reader is an open file of a segment. It is an alias, so that interfaces of other packages with
// the same methods are the same type.
type Reader = interface {
	io.ReaderAt
	io.Closer
	Stat() (tier.Stat, error)
	// DropCache hints that the bytes [off, off+n) will not be read again soon.
	DropCache(off, n int64)
}

// Open opens one file of a segment; name is a base name.
func (s *Source) Open(ctx context.Context, id tier.LogID, name string) (Reader, error) {
	var r Reader
	err := s.inLog(ctx, id, name, func(root vfs.Dir, at string) error {
		f, err := root.Open(at)
		if err == nil {
			r = openFile{f}
		}
		return err
	})
	return r, err
}

// openFile is a vfs.File as a Reader.
type openFile struct{ vfs.File }

// Stat implements Reader.
func (f openFile) Stat() (tier.Stat, error) {
	info, err := f.File.Stat()
	return info.Stat, err
}

// inLog calls do with the path of a file in the log's directory.
func (s *Source) inLog(ctx context.Context, id tier.LogID, name string,
	do func(root vfs.Dir, at string) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if name == "" || name[0] == '.' || strings.ContainsRune(name, '/') {
		return fmt.Errorf("log %s: %q is no name of a segment's file", id, name)
	}
	root, err := s.root()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, err := s.place(root, id)
	if err != nil {
		return err
	}
	err = do(root, path.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		if trouble := s.trouble(root.List(".")); trouble != nil {
			return fmt.Errorf("log %s: %s", id, trouble.Text)
		}
	}
	return gone(err)
}

// gone makes an error about a missing file one that wraps tier.ErrVanished.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, tier.ErrVanished) {
		return fmt.Errorf("%w: %w", tier.ErrVanished, err)
	}
	return err
}

// dirLocks is a lock for each directory of logs: a drop excludes whoever lists it. Those that
// nobody holds or waits for are forgotten.
type dirLocks struct {
	mu    sync.Mutex
	locks map[string]*dirLock
}

// dirLock is the lock of one directory.
type dirLock struct {
	sync.RWMutex
	users int // who hold it or wait for it; guarded by dirLocks.mu
}

// drop excludes everybody else from the directory until done is called.
func (l *dirLocks) drop(dir string) (done func()) {
	lock := l.use(dir)
	lock.Lock()
	return func() {
		lock.Unlock()
		l.leave(dir, lock)
	}
}

// list excludes drops in the directory until done is called.
func (l *dirLocks) list(dir string) (done func()) {
	lock := l.use(dir)
	lock.RLock()
	return func() {
		lock.RUnlock()
		l.leave(dir, lock)
	}
}

func (l *dirLocks) use(dir string) *dirLock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.locks == nil {
		l.locks = map[string]*dirLock{}
	}
	lock := l.locks[dir]
	if lock == nil {
		lock = &dirLock{}
		l.locks[dir] = lock
	}
	lock.users++
	return lock
}

func (l *dirLocks) leave(dir string, lock *dirLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(l.locks, dir)
	}
}
