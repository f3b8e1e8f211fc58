package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"sync"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// DefaultFileBytesMax is how large a file grows where Options do not say.
const DefaultFileBytesMax = 16 << 20

var (
	errClosed    = errors.New("the audit log is closed")
	errUnwritten = errors.New("the audit log was not written")
)

// Options tell how a Log writes.
type Options struct {
	// FileBytesMax is the size at which a new file begins; a file with one batch alone may be
	// larger. 0 means DefaultFileBytesMax.
	FileBytesMax int64
}

// Log is an open audit log, which has one writer. Its methods are safe for concurrent use, and
// make durable together what is asked of them at one time.
//
// After an error of the file system nothing is known to be durable any more: the Log is broken, and
// every further call fails. Errors that wrap tier.ErrRefused concern one call alone; for those
// nothing was written.
type Log struct {
	dir          vfs.Dir
	fileBytesMax int64

	mu      sync.Mutex // guards what follows; never held while a file is touched
	seq     uint64     // the last one given out
	open    map[uint64]tier.Deletion
	pending *batch
	broken  error

	commit  sync.Mutex // held by whoever writes a batch; guards what follows
	file    vfs.File   // the last one; nil when closed
	number  int        // of file
	size    int64      // of file
	head    tier.SHA256
	written uint64 // seq of the last durable record
}

// batch is the records that one write and one fsync make durable.
type batch struct {
	entries []entry // guarded by Log.mu
	done    bool    // guarded by Log.commit, like err
	err     error
}

// entry is a record that still lacks its place in the chain.
type entry struct {
	seq, openFrom uint64
	body          []byte
}

// Open opens the log in dir, or begins one, and puts right what a crash left at its end. It reads
// back as far as intents without an outcome go; Verify reads everything. The Log closes dir when it
// is closed; where Open errs, dir stays the caller's.
func Open(dir vfs.Dir, opts Options) (*Log, error) {
	l := &Log{dir: dir, fileBytesMax: opts.FileBytesMax, pending: &batch{},
		open: map[uint64]tier.Deletion{}}
	if l.fileBytesMax <= 0 {
		l.fileBytesMax = DefaultFileBytesMax
	}
	numbers, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return l, l.begin(1)
	}
	c, end, err := scanBack(dir, numbers)
	if err != nil {
		return nil, err
	}
	l.number = numbers[len(numbers)-1]
	if l.file, err = dir.Append(nameOf(l.number)); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	if err := l.settle(end); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	l.seq, l.written, l.head = c.seq, c.seq, c.head
	maps.Copy(l.open, c.open)
	return l, nil
}

// scanBack reads as many of the last files as hold all open intents; at least two, because the last
// one may have no whole record yet.
func scanBack(dir vfs.Dir, numbers []int) (*chain, tail, error) {
	for i := max(len(numbers)-2, 0); ; i-- {
		c := &chain{}
		end, err := scan(dir, numbers[i:], c, nil)
		switch {
		case err != nil:
			return nil, tail{}, err
		case c.first != 0 && c.openFrom >= c.first, numbers[i] == 1:
			return c, end, nil
		case i == 0:
			return nil, tail{}, fmt.Errorf("%s: %w: the file is missing, and the log cannot go on "+
				"without its records from %d on", nameOf(numbers[0]-1), tier.ErrDamaged, c.openFrom)
		}
	}
}

// settle cuts the torn tail off the last file, keeping it aside, and makes durable what is read as
// if it were: a process that ended may have left it unsynced.
func (l *Log) settle(end tail) error {
	if end.bytes > 0 {
		if err := l.keepAside(end); err != nil {
			return fmt.Errorf("keep what a crash left of %s: %w", nameOf(l.number), err)
		}
		if err := l.file.Truncate(end.offset); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if err := l.dir.Sync("."); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	l.size = end.offset
	return nil
}

// asideMax bounds how many torn tails may have begun at the same place.
const asideMax = 1000

// keepAside copies the torn tail into a file of its own.
func (l *Log) keepAside(end tail) error {
	for i := range asideMax {
		name := fmt.Sprintf("torn-%06d-%d.bin", l.number, end.offset)
		if i > 0 {
			name = fmt.Sprintf("torn-%06d-%d-%d.bin", l.number, end.offset, i)
		}
		f, err := l.dir.Create(name)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = io.Copy(f, io.NewSectionReader(l.file, end.offset, end.bytes))
		if err == nil {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return l.dir.Sync(".")
	}
	return fmt.Errorf("there are %d torn-%06d-%d files: look at them and move them away",
		asideMax, l.number, end.offset)
}

// begin makes a file and its name durable, empty.
func (l *Log) begin(number int) error {
	f, err := l.dir.Create(nameOf(number))
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	if err := l.dir.Sync("."); err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	l.file, l.number, l.size = f, number, 0
	return nil
}

// Intend makes the record of a deletion that is about to happen durable, and returns its number.
// A deletion that cannot be recorded is tier.ErrRefused. The context counts until the record is
// queued.
func (l *Log) Intend(ctx context.Context, d tier.Deletion) (uint64, error) {
	body, err := bodyOfIntent(d)
	if err != nil {
		return 0, fmt.Errorf("audit %s of %s %s: %w: %w", d.Action, d.Log, d.Range,
			tier.ErrRefused, err)
	}
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("audit log: %w: %w", tier.ErrRefused, err)
	}
	return l.append(body, func(seq uint64) error {
		l.open[seq] = d
		return nil
	})
}

// Conclude makes the outcome of the intent seq durable. An intent has one outcome; for any other
// number the error is tier.ErrRefused. The context does not count: the outcome is a fact.
func (l *Log) Conclude(_ context.Context, seq uint64, o tier.Outcome) error {
	body, err := bodyOfOutcome(seq, o)
	if err != nil {
		return fmt.Errorf("conclude record %d: %w: %w", seq, tier.ErrRefused, err)
	}
	_, err = l.append(body, func(uint64) error {
		if _, isOpen := l.open[seq]; !isOpen {
			return fmt.Errorf("conclude record %d: %w: it is no open intent", seq, tier.ErrRefused)
		}
		delete(l.open, seq)
		return nil
	})
	return err
}

// OpenIntents are the deletions without an outcome, ascending by number: after Open, those that
// were under way when the process ended.
func (l *Log) OpenIntents() []tier.Intent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return openIntents(l.open)
}

// Err is why the Log is broken; nil while it works.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Close waits for what is being written, and closes files and directory. It may be called again.
func (l *Log) Close() error {
	l.commit.Lock()
	defer l.commit.Unlock()
	if l.file == nil {
		return nil
	}
	l.mu.Lock()
	if l.broken == nil {
		l.broken = errClosed
	}
	l.mu.Unlock()
	err := errors.Join(l.file.Close(), l.dir.Close())
	l.file = nil
	return err
}

// append queues one record and returns when its batch is durable. Whoever finds the batch not yet
// written writes it, with everything that was queued meanwhile. take, which must not touch a file,
// brings l.open to what it is after the record, or refuses.
func (l *Log) append(body []byte, take func(seq uint64) error) (uint64, error) {
	l.mu.Lock()
	if err := l.broken; err != nil {
		l.mu.Unlock()
		return 0, err
	}
	if err := take(l.seq + 1); err != nil {
		l.mu.Unlock()
		return 0, err
	}
	l.seq++
	seq, b := l.seq, l.pending
	b.entries = append(b.entries, entry{seq, oldestOpen(l.open, seq), body})
	l.mu.Unlock()

	l.commit.Lock()
	defer l.commit.Unlock()
	if !b.done {
		l.lead(b)
	}
	return seq, b.err
}

// lead writes the pending batch, with l.commit held.
func (l *Log) lead(b *batch) {
	l.mu.Lock()
	l.pending = &batch{}
	broken := l.broken
	l.mu.Unlock()
	b.done, b.err = true, errUnwritten // also where write does not return
	if broken == nil {
		if err := l.write(b.entries); err != nil {
			broken = fmt.Errorf("audit log: nothing can be recorded until a restart: %w", err)
		}
	}
	b.err = broken
	l.mu.Lock()
	l.broken = broken
	l.mu.Unlock()
}

// write makes a batch durable, in a new file if the last one is full.
func (l *Log) write(entries []entry) error {
	var data []byte
	head := l.head
	for _, e := range entries {
		start := len(data)
		data = appendLine(data, e, head, l.written+1)
		head = sha256.Sum256(data[start:])
		data = append(data, '\n')
	}
	if l.size > 0 && l.size+int64(len(data)) > l.fileBytesMax {
		old := l.file
		if err := l.begin(l.number + 1); err != nil {
			return err
		}
		if err := old.Close(); err != nil {
			return err
		}
	}
	if _, err := l.file.Write(data); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.head, l.size, l.written = head, l.size+int64(len(data)), entries[len(entries)-1].seq
	return nil
}
