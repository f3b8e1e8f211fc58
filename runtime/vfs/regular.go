package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// errNoFile is why a pipe, a device or a socket is not read.
var errNoFile = errors.New("it is no regular file, and nothing else is read")

// ErrTooLarge is why a file is not read to its end.
var ErrTooLarge = errors.New("it is too large")

// ErrChanged is why nothing is made of a file that somebody wrote to meanwhile.
var ErrChanged = errors.New("it changed while it was read; write to another name and rename")

// ReadRegular reads the file at path, which an operator named and which may be a link. What is no
// regular file is an error, since a pipe without a writer would hold up the reader for ever, and a
// device may have no end. Of a file of more than bytesMax it gives so many, and ErrTooLarge. Errors
// are *fs.PathError.
func ReadRegular(path string, bytesMax int64) (content []byte, err error) {
	err = open(path, func(f *os.File) (err error) {
		content, err = readRegular(f, bytesMax)
		return err
	})
	return content, err
}

// ReadStill is ReadRegular of a file that others write at any time: where its size or modification
// time is another after reading than before, what was read may be of both, and the error is
// ErrChanged. modTime is that of the content.
func ReadStill(path string, bytesMax int64) (content []byte, modTime time.Time, err error) {
	err = open(path, func(f *os.File) (err error) {
		content, modTime, err = still(f, func() ([]byte, error) { return readRegular(f, bytesMax) })
		return err
	})
	return content, modTime, err
}

// still reads f, unless it is another file after that than before.
func still(f *os.File, read func() ([]byte, error)) ([]byte, time.Time, error) {
	before, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	content, err := read()
	if err != nil {
		return nil, time.Time{}, err
	}
	after, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	if int64(len(content)) != before.Size() || after.Size() != before.Size() ||
		!after.ModTime().Equal(before.ModTime()) {
		return nil, time.Time{}, &fs.PathError{Op: "read", Path: f.Name(), Err: ErrChanged}
	}
	return content, before.ModTime(), nil
}

// open hands the file at path to read. It waits for no writer of a pipe.
func open(path string, read func(f *os.File) error) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = read(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
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
