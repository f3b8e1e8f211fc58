package read

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// companion opens another file of the segment, an index; nil if there is none that helps.
func (f *segfile) companion(ext string) (at io.ReaderAt, size int64, done func() error, err error) {
	if f.file == nil {
		data, err := f.content(ext)
		if useless(err) || err == nil && data == nil {
			return nil, 0, nil, nil // the log has to do
		}
		return bytesAt(data), int64(len(data)), func() error { return nil }, err
	}
	file, err := f.sibling(ext)
	if err != nil || file == nil {
		return nil, 0, nil, err
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, 0, nil, errors.Join(err, file.Close())
	}
	return file, stat.Size, file.Close, nil
}

// content reads another file of the segment whole; nil if there is none.
func (f *segfile) content(ext string) ([]byte, error) {
	if f.file != nil {
		return f.readSibling(ext)
	}
	d, ok := f.digest(ext)
	if !ok {
		return nil, nil // it did not fit its log when that was copied, or never was
	}
	data, err := f.r.c.Cache.whole(f.ctx, f.object.key, d)
	if useless(err) {
		f.suspect(err)
	}
	return data, err
}

// sibling opens another file of a local segment; nil if it is not there.
func (f *segfile) sibling(ext string) (File, error) {
	file, err := f.r.c.Local.Open(f.ctx, f.log, strings.TrimSuffix(f.name, extLog)+ext)
	if errors.Is(err, tier.ErrVanished) {
		return nil, nil
	}
	return file, err
}

// readSibling reads another file of a local segment whole; nil if it is not there.
func (f *segfile) readSibling(ext string) (data []byte, err error) {
	file, err := f.sibling(ext)
	if err != nil || file == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	stat, err := file.Stat()
	if err == nil && stat.Size > wholeBytesMax {
		err = f.named(fmt.Errorf("its %s has %d bytes, more than %d: %w", ext, stat.Size, wholeBytesMax,
			ErrIndivisible))
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(file, 0, stat.Size))
}

// useless reports whether a file cannot be had as it was copied, however often it is asked for.
func useless(err error) bool {
	return errors.Is(err, tier.ErrDamaged) || errors.Is(err, tier.ErrVanished) ||
		errors.Is(err, ErrIndivisible)
}

// suspect tells that an object of the copy is not what it should be.
func (f *segfile) suspect(err error) {
	if f.r.c.Suspect != nil && !errors.Is(err, ErrIndivisible) {
		f.r.c.Suspect(f.log, f.copy.Position, err)
	}
}

// bytesAt reads from bytes.
type bytesAt []byte

// ReadAt implements io.ReaderAt.
func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
