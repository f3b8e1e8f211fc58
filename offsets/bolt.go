package offsets

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/tierd/tierd/runtime/tier"
)

// bucketName is the only bucket of a ledger's file.
var bucketName = []byte("tierd")

// mmapBytes is how much address space is reserved for the file, so that a growing file seldom has
// to be mapped anew: that waits until nobody reads.
const mmapBytes = 1 << 28

// allocBytes is by how much the file grows when it is full.
const allocBytes = 1 << 20

// fillPercent is how full a page is left when it is split. Most keys are appended behind those of
// their log, so that a split page seldom gets another one.
const fillPercent = 0.9

// BoltOptions says how a ledger's file is opened.
type BoltOptions struct {
	// NewID makes the id of a new ledger; it is called only where a file is new. Required unless
	// ReadOnly.
	NewID func() [16]byte
	// ReadOnly opens for reading only, together with others that do. A file that is not there, or
	// has never been written to, is tier.ErrVanished.
	ReadOnly bool
	// LockWait is how long to wait for another process to let go of the file.
	LockWait time.Duration
	// JournalBytesMax is how many bytes the journal has before its changes are put where they belong;
	// 0 is 2 MiB.
	JournalBytesMax int
}

// Bolt is a medium in a bbolt file. bbolt takes its file for sound and panics, faults or runs in
// circles where it is not. So the file's pages are checked before it is used, and what bbolt throws
// nevertheless is caught here and becomes an error.
type Bolt struct {
	path string
	file *os.File // of db; db closes it
	db   *bbolt.DB

	journalMax int
	updating   sync.Mutex             // held from when recent is read until it is replaced
	recent     atomic.Pointer[recent] // of the last commit

	mu     sync.Mutex
	closed bool
	thrown bool // bbolt panicked: its locks may be held for ever
}

var _ Medium = (*Bolt)(nil)

// OpenBolt opens the ledger's file, and makes it where there is none. It is locked against other
// processes until Close: one that holds it already is ErrInUse. A file whose pages are not sound is
// tier.ErrDamaged.
func OpenBolt(path string, o BoltOptions) (*Bolt, error) {
	b := &Bolt{path: path, journalMax: cmp.Or(o.JournalBytesMax, journalBytesMax)}
	err := b.open(o)
	if err == nil {
		return b, nil
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		err = fmt.Errorf("%w%s", ErrInUse, holder(b.file))
	case o.ReadOnly && errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w: %w", tier.ErrVanished, err)
	case errors.Is(err, tier.ErrDamaged):
		err = fmt.Errorf("%w; %s", err, advice)
	case errors.Is(err, tier.ErrNewer):
		err = fmt.Errorf("%w; %s", err, newerAdvice)
	}
	return nil, errors.Join(fmt.Errorf("ledger %s: %w", path, err), b.Close())
}

func (b *Bolt) open(o BoltOptions) error {
	options := &bbolt.Options{
		ReadOnly:        o.ReadOnly,
		Timeout:         max(o.LockWait, 1), // 0 would wait for ever
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mmapBytes,
		NoStatistics:    true,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			b.file, err = os.OpenFile(name, flag, mode)
			return b.file, err
		},
	}
	if err := b.call(func() (err error) {
		b.db, err = bbolt.Open(b.path, 0o600, options)
		return err
	}); err != nil {
		return b.opening(err, o.ReadOnly)
	}
	b.db.AllocSize = allocBytes
	if err := checkPages(b.file, b.db.Info().PageSize); err != nil {
		return err
	}
	virgin, err := b.virgin()
	if err != nil {
		return err
	}
	if !virgin {
		return b.restore()
	}
	if o.ReadOnly {
		return fmt.Errorf("%w: nothing was ever written to it", tier.ErrVanished)
	}
	// bbolt has synced the file, but not its name.
	if err := syncDir(filepath.Dir(b.path)); err != nil {
		return err
	}
	err = b.update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket(bucketName)
		if err != nil {
			return err
		}
		return birth(&boltTx{b, bucket}, o.NewID)
	})
	if err != nil {
		return err
	}
	return b.restore()
}

// restore reads the journal.
func (b *Bolt) restore() error {
	return b.transact(false, func(tx *bbolt.Tx) error {
		tree, err := b.tree(tx)
		if err != nil {
			return err
		}
		r, err := readJournal(tree)
		b.recent.Store(r)
		return err
	})
}

// opening makes damage of what bbolt.Open says, unless the system said it. bbolt begins an empty
// file, also where it may not write, and stumbles over one that was cut short.
func (b *Bolt) opening(err error, readOnly bool) error {
	info, statErr := os.Stat(b.path)
	var path *fs.PathError
	var system syscall.Errno
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return err
	case readOnly && statErr == nil && info.Size() == 0:
		return fmt.Errorf("%w: it is empty", tier.ErrVanished)
	case b.thrown:
		if why := checkPages(b.file, os.Getpagesize()); why != nil {
			return why
		}
		return err
	case errors.As(err, &path) || errors.As(err, &system):
		return err
	}
	return fmt.Errorf("%w: %w", tier.ErrDamaged, err)
}

// virgin reports whether nothing was ever committed to the file, as after a crash while it was
// made. bbolt begins with transaction 1 and commits 2 first.
func (b *Bolt) virgin() (bool, error) {
	var id int
	err := b.call(func() error {
		return b.db.View(func(tx *bbolt.Tx) error {
			id = tx.ID()
			return nil
		})
	})
	return id < 2, err
}

// View implements Medium. No commit ended from when recent was read until the transaction began: it
// is that of this commit, or already that of the next.
func (b *Bolt) View(fn func(Reader) error) (err error) {
	for again := true; again; {
		recent := b.recent.Load()
		err = b.transact(false, func(tx *bbolt.Tx) error {
			if again = b.recent.Load() != recent; again {
				return nil
			}
			tree, err := b.tree(tx)
			if err != nil {
				return err
			}
			return fn(&recentReader{recent, tree})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Update implements Medium.
func (b *Bolt) Update(fn func(Tx) error) error {
	b.updating.Lock()
	defer b.updating.Unlock()
	var after *recent
	err := b.update(func(tx *bbolt.Tx) error {
		tree, err := b.tree(tx)
		if err != nil {
			return err
		}
		tree.bucket.FillPercent = fillPercent
		before := b.recent.Load().clone()
		t := &recentTx{recentReader: recentReader{before, tree}, full: before.bytes >= b.journalMax}
		if err := fn(t); err != nil {
			return err
		}
		after = t.recent
		return t.finish()
	})
	if err == nil {
		b.recent.Store(after)
	}
	return err
}

func (b *Bolt) update(fn func(*bbolt.Tx) error) error { return b.transact(true, fn) }

func (b *Bolt) tree(tx *bbolt.Tx) (*boltTx, error) {
	var bucket *bbolt.Bucket
	err := b.call(func() error {
		bucket = tx.Bucket(bucketName)
		return nil
	})
	if err == nil && bucket == nil {
		err = fmt.Errorf("%w: the bucket %s is missing", tier.ErrDamaged, bucketName)
	}
	return &boltTx{b, bucket}, err
}

// transact runs fn in a transaction, and commits it if it may write.
func (b *Bolt) transact(writable bool, fn func(*bbolt.Tx) error) (err error) {
	// A page that the disk cannot give is a fault in whoever looks at it, fn included.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	var tx *bbolt.Tx
	if err := b.call(func() (err error) {
		tx, err = b.db.Begin(writable)
		return err
	}); err != nil {
		return err
	}
	defer func() {
		p := recover()
		if tx != nil {
			if rerr := b.call(tx.Rollback); rerr != nil {
				err = errors.Join(err, rerr)
			}
		}
		if _, ok := p.(interface{ Addr() uintptr }); ok {
			err = b.caught(p)
		} else if p != nil {
			panic(p)
		}
	}()
	if err := fn(tx); err != nil || !writable {
		return err
	}
	done := tx
	tx = nil // after Commit there is nothing to roll back, whatever it says
	return b.grown(b.call(done.Commit))
}

// grown gives an error of a commit its cause again: where the file cannot grow, bbolt keeps no more
// of it than the words. Whether the disk is full decides what an operator is told.
func (b *Bolt) grown(err error) error {
	var errno syscall.Errno
	if err == nil || errors.As(err, &errno) {
		return err
	}
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if text := err.Error(); strings.HasPrefix(text, "file ") &&
			strings.HasSuffix(text, ": "+errno.Error()) {
			return &fs.PathError{Op: "grow", Path: b.path, Err: errno}
		}
	}
	return err
}

// call calls bbolt, and makes an error of what it throws.
func (b *Bolt) call(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = b.caught(p)
		}
	}()
	return fn()
}

func (b *Bolt) caught(p any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.thrown = true
	return fmt.Errorf("%w: %v", tier.ErrDamaged, p)
}

// Close implements Medium. It waits for transactions to end.
func (b *Bolt) Close() error {
	b.mu.Lock()
	closed, thrown := b.closed, b.thrown
	b.closed = true
	b.mu.Unlock()
	switch {
	case closed || b.file == nil:
		return nil
	case thrown: // bbolt might wait for itself
		return errors.Join(unlock(b.file), b.file.Close())
	case b.db == nil: // bbolt has closed the file
		return nil
	}
	return b.call(b.db.Close)
}

// String implements Medium.
func (b *Bolt) String() string { return b.path }

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// boltTx reads and changes the tree of keys in the file, in a transaction.
type boltTx struct {
	b      *Bolt
	bucket *bbolt.Bucket
}

// Get returns the value of key; nil if there is none.
func (t *boltTx) Get(key []byte) (value []byte, err error) {
	err = t.b.call(func() error {
		value = t.bucket.Get(key)
		return nil
	})
	return value, err
}

// boltCursor stands on a key; on none, nil, behind the last.
type boltCursor struct {
	b          *Bolt
	cursor     *bbolt.Cursor
	key, value []byte
}

// seek returns a cursor on the first key at or above from.
func (t *boltTx) seek(from []byte) (*boltCursor, error) {
	c := &boltCursor{b: t.b}
	return c, t.b.call(func() error {
		c.cursor = t.bucket.Cursor()
		c.key, c.value = c.cursor.Seek(from)
		return nil
	})
}

func (c *boltCursor) next() error {
	return c.b.call(func() error {
		c.key, c.value = c.cursor.Next()
		return nil
	})
}

// Put sets the value of key.
func (t *boltTx) Put(key, value []byte) error {
	return t.b.call(func() error { return t.bucket.Put(key, value) })
}

// Delete removes key, if it is there.
func (t *boltTx) Delete(key []byte) error {
	return t.b.call(func() error { return t.bucket.Delete(key) })
}
