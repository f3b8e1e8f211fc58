package vfs

import (
	"errors"
	"io"
	"path"
	"slices"
	"syscall"
)

// memFile is an open file of a Mem.
type memFile struct {
	fs       *memFS
	node     *node
	path     string // when it was opened
	writable bool
	append   bool
	pos      int64 // guarded by fs.mu, like closed
	closed   bool
}

var _ File = (*memFile)(nil)

func (f *memFile) do(kind OpKind, perform func() error) error {
	return f.fs.perform(kind, f.path, "", func() error {
		if f.closed {
			return errClosed
		}
		return perform()
	})
}

// Read implements io.Reader.
func (f *memFile) Read(p []byte) (n int, err error) {
	err = f.do(OpRead, func() error {
		n, err = f.readAt(p, f.pos)
		f.pos += int64(n)
		if n > 0 {
			return nil
		}
		return err
	})
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f *memFile) ReadAt(p []byte, off int64) (n int, err error) {
	err = f.do(OpRead, func() error {
		n, err = f.readAt(p, off)
		return err
	})
	return n, err
}

func (f *memFile) readAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, syscall.EINVAL
	}
	n := copy(p, f.node.data[min(off, int64(len(f.node.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Write implements io.Writer.
func (f *memFile) Write(p []byte) (n int, err error) {
	err = f.do(OpWrite, func() error {
		if !f.writable {
			return syscall.EBADF
		}
		data := f.node.data
		if f.append {
			f.pos = int64(len(data))
		}
		full := error(nil)
		if fits := max(f.fs.room()+int64(len(data))-f.pos, 0); int64(len(p)) > fits {
			p, full = p[:fits], ErrFull
		}
		if f.pos > int64(len(data)) { // cut shorter by somebody else
			data = append(data, make([]byte, f.pos-int64(len(data)))...)
		}
		if f.pos < int64(len(data)) {
			data = slices.Clone(data) // node.synced may share the memory
		}
		n = copy(data[f.pos:], p)
		f.node.data = append(data, p[n:]...)
		n = len(p)
		f.pos += int64(n)
		f.node.mtime = f.fs.clock()
		return full
	})
	return n, err
}

// Close implements io.Closer.
func (f *memFile) Close() error {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	if f.closed {
		return errClosed
	}
	f.closed = true
	return nil
}

// Stat implements File.
func (f *memFile) Stat() (info Info, err error) {
	err = f.do(OpStat, func() error {
		info = f.node.info(path.Base(f.path))
		return nil
	})
	return info, err
}

// Sync implements File.
func (f *memFile) Sync() error {
	reached := false
	err := f.fs.perform(OpSync, f.path, "", func() error {
		reached = true
		if f.closed {
			return errClosed
		}
		if !f.node.syncBroken {
			f.node.synced = f.node.data
		}
		return nil
	})
	if !reached && !errors.Is(err, ErrCrashed) {
		f.fs.mu.Lock()
		defer f.fs.mu.Unlock()
		f.node.syncBroken = true
	}
	return err
}

// Truncate implements File.
func (f *memFile) Truncate(size int64) error {
	return f.do(OpTruncate, func() error {
		data := f.node.data
		switch {
		case !f.writable || size < 0:
			return syscall.EINVAL
		case size <= int64(len(data)):
			f.node.data = data[:size:size] // what is appended next goes to other memory
		default:
			f.node.data = append(data, make([]byte, size-int64(len(data)))...)
		}
		f.node.mtime = f.fs.clock()
		return nil
	})
}

// DropCache implements File. There is no cache.
func (f *memFile) DropCache(int64, int64) {}
