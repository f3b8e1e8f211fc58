package facts

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/tierd/tierd/runtime/tier"
)

// fileBytesMax bounds a file.
const fileBytesMax = 16 << 20

// The ways in which a file is no fact, beside those of the file system.
var (
	errUnread  = errors.New("it has not been read yet")
	errNoFile  = errors.New("it is no regular file")
	errLarge   = errors.New("it is larger than 16 MiB")
	errChanges = errors.New("it changed while it was read; write to another name and rename")
)

// readFile reads a file that lies still.
func readFile(path string) ([]byte, tier.Time, error) {
	// A pipe without a writer must not hold up the reader.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	content, modTime, err := readStill(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if p := (*fs.PathError)(nil); err != nil && !errors.As(err, &p) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return content, modTime, err
}

func readStill(f *os.File) ([]byte, tier.Time, error) {
	before, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case !before.Mode().IsRegular():
		return nil, 0, errNoFile
	case before.Size() > fileBytesMax:
		return nil, 0, errLarge
	}
	content, err := io.ReadAll(io.LimitReader(f, fileBytesMax+1))
	if err != nil {
		return nil, 0, err
	}
	after, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case int64(len(content)) != before.Size() || after.Size() != before.Size() ||
		!after.ModTime().Equal(before.ModTime()):
		return nil, 0, errChanges
	}
	return content, tier.TimeOf(before.ModTime()), nil
}
