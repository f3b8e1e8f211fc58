package config

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.yaml.in/yaml/v3"
)

// Host is what loading may see of the machine, so that tests and the simulator can give it another
// one. ReadFile, ReadDir, LookupEnv and RealPath are needed; none of them may panic.
type Host struct {
	ReadFile  func(name string) ([]byte, error)
	ReadDir   func(name string) ([]fs.DirEntry, error)
	LookupEnv func(name string) (string, bool)
	// RealPath returns the absolute path with links resolved as far as the path exists.
	RealPath func(name string) string
	// CheckBucket says what is wrong with the bucket's own part, which is never nil. Without it no
	// check is made, so that config need not link the providers.
	CheckBucket func(kind string, config *yaml.Node) []BucketProblem
}

// BucketProblem is something wrong with a node of the bucket's own part.
type BucketProblem struct {
	Node *yaml.Node // where; nil is the whole part
	Text string
	Hint string
}

// OS is the real machine.
func OS() Host {
	return Host{
		ReadFile: readFile, ReadDir: os.ReadDir, LookupEnv: os.LookupEnv, RealPath: realPath,
	}
}

// hostBytesMax bounds what is read of one file: the largest that anything here may be. One byte
// more is read, by which whoever asked sees that a file is too large for them.
const hostBytesMax = max(fileBytesMax, ModuleBytesMax)

var errNoFile = errors.New("it is no regular file, and nothing else is read")

// readFile reads a regular file. A pipe without a writer would hold up a reload, and with it the
// daemon, for ever; a device may have no end.
func readFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	content, err := readRegular(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return content, err
}

func readRegular(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Reading a directory says better itself what is wrong.
	if !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: errNoFile}
	}
	return io.ReadAll(io.LimitReader(f, hostBytesMax+1))
}

// realPath resolves the links of the longest part of name that exists.
func realPath(name string) string {
	abs, err := filepath.Abs(name)
	if err != nil {
		return filepath.Clean(name)
	}
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return abs
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
