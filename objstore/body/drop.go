package body

import "io"

// dropStep is how much is read before the page cache is told to let go of it, in bytes. Parts of
// multipart uploads begin at multiples of it.
const dropStep = 1 << 20

// Dropper is a file whose pages can be dropped from the page cache.
type Dropper interface {
	io.ReaderAt
	// DropCache hints that the bytes [off, off+n) will not be read again soon.
	DropCache(off, n int64)
}

// DropBehind returns a reader of r, a file of size bytes, that drops what was read behind itself,
// so that an upload does not push the broker's hot pages out of memory. Readers that cannot drop
// are returned as they are. It keeps no state: several parts may be read at one time.
func DropBehind(r io.ReaderAt, size int64) io.ReaderAt {
	if d, ok := r.(Dropper); ok {
		return dropBehind{d, size}
	}
	return r
}

type dropBehind struct {
	Dropper
	size int64
}

// ReadAt implements io.ReaderAt. The kernel drops whole pages only, so the step that this read
// finishes is dropped as one, from its beginning.
func (d dropBehind) ReadAt(p []byte, off int64) (int, error) {
	n, err := d.Dropper.ReadAt(p, off)
	from, to := off/dropStep*dropStep, (off+int64(n))/dropStep*dropStep
	if off+int64(n) >= d.size {
		to = off + int64(n)
	}
	if n > 0 && to > from {
		d.DropCache(from, to-from)
	}
	return n, err
}
