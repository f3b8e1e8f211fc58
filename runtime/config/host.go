package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/vfs"
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

// hostBytesMax bounds what is read of one file: one byte more than the largest that anything here
// may be, so that whoever asked says itself that a file is too large for it.
const hostBytesMax = max(fileBytesMax, ModuleBytesMax) + 1

// readFile reads a regular file, of which it leaves out what lies behind hostBytesMax.
func readFile(name string) ([]byte, error) {
	content, err := vfs.ReadRegular(name, hostBytesMax)
	if errors.Is(err, vfs.ErrTooLarge) {
		return content, nil
	}
	return content, err
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
