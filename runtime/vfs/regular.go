package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// errNoFile is why a pipe, a device or a socket is not read.
var errNoFile = errors.New("it is no regular file, and nothing else is read")

// ErrTooLarge is why a file is not read to its end.
var ErrTooLarge = errors.New("it is too large")

// ReadRegular reads the file at path, which an operator named and which may be a link. What is no
// regular file is an error, since a pipe without a writer would hold up the reader for ever, and a
// device may have no end. Of a file of more than bytesMax it gives so many, and ErrTooLarge. Errors
// are *fs.PathError.
func ReadRegular(path string, bytesMax int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	content, err := readRegular(f, bytesMax)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return content, err
}

func readRegular(f *os.File, bytesMax int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Reading a directory says better itself what is wrong.
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: errNoFile}
	}
	content, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err == nil && int64(len(content)) > bytesMax {
		return content[:bytesMax], &fs.PathError{Op: "read", Path: f.Name(),
			Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, bytesMax)}
	}
	return content, err
}
