// Package vfs is the file system that tierd's own durable writes and its sources go through.
//
// A Dir is one directory, and confines: names are slash-separated paths below it, no step may be
// a link, ".." is refused. There are two implementations with one conformance suite (vfstest): OS,
// over openat; and Mem, whose Crash drops whatever was not synced and whose faults a test injects.
//
// Durability follows POSIX, not what ext4 happens to give: a file's bytes are durable after
// File.Sync, a name (created, renamed or removed) after Dir.Sync of its directory. One promise of
// every journaling file system is relied on beyond that: a rename never loses its file, so that
// after a crash the file has its old name or its new one, or, between two directories, both.
package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrNotRegular is returned for a link, a directory or a device where a regular file is wanted.
var ErrNotRegular = errors.New("not a regular file")

// errLink is returned where a step of a name, or the file that it names, is a link.
var errLink = fmt.Errorf("links are not followed: %w", ErrNotRegular)

// Dir is a directory that confines its user. All methods are safe for concurrent use. Errors wrap
// fs.ErrNotExist, fs.ErrExist, fs.ErrPermission where they apply, and are *fs.PathError values.
type Dir interface {
	// Open opens a regular file for reading. A link is ErrNotRegular.
	Open(name string) (File, error)
	// Create makes a new file for writing; it is an error if the name exists.
	Create(name string) (File, error)
	// Append opens a file for reading and appending, and makes it if it does not exist.
	Append(name string) (File, error)
	// Stat describes name without following a link.
	Stat(name string) (Info, error)
	// List describes the entries of the directory name ("." is this one), ascending by name.
	List(name string) ([]Info, error)
	// Names names the entries of the directory name, ascending. It costs a fraction of List.
	Names(name string) ([]string, error)
	// Mkdir makes a directory; it is an error if the name exists.
	Mkdir(name string) error
	// Rename moves a file within this Dir and never replaces: an existing target is fs.ErrExist.
	Rename(from, to string) error
	// Replace moves a file within this Dir over whatever file has the target name.
	Replace(from, to string) error
	// Link gives a regular file one more name, and never replaces: an existing target is fs.ErrExist.
	Link(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(name string) error
	// RemoveDir removes an empty directory and nothing else: a file that has taken its name stays.
	RemoveDir(name string) error
	// Sync makes the names in the directory name durable.
	Sync(name string) error
	// Sub opens the directory name below this one. It is an error if a step of it is a link.
	Sub(name string) (Dir, error)
	// Close gives the directory back. Files opened through it stay usable.
	Close() error
}

// File is an open regular file. Reads at an offset are safe for concurrent use.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.Closer
	// Stat describes the open file, whatever its name is now.
	Stat() (Info, error)
	// Sync makes the bytes written so far durable. After an error the file must not be trusted.
	Sync() error
	// Truncate cuts the file to size bytes.
	Truncate(size int64) error
	// DropCache tells the kernel that bytes [off, off+n) will not be read again soon, so that
	// reading a file does not push out other programs' cached pages. It is a hint.
	DropCache(off, n int64)
}

// Info describes a file or a directory.
type Info struct {
	Name string      // base name
	Mode fs.FileMode // type and permission bits
	// Dir is which directory this is, or the one that a link leads to, which is all that is told of
	// it; zero where it is none.
	Dir DirID
	tier.Stat
}

// DirID tells a directory from all others that are there at the time.
type DirID struct{ Device, Inode uint64 }

// ToDir reports whether the entry is a link that leads to a directory.
func (i Info) ToDir() bool { return i.Mode.Type() == fs.ModeSymlink && i.Dir != DirID{} }

// Regular reports whether the entry is a regular file.
func (i Info) Regular() bool { return i.Mode.IsRegular() }

func validName(name string) bool { return fs.ValidPath(name) && strings.IndexByte(name, 0) < 0 }

// splitName checks a name and splits it into the steps to its parent directory and its last
// element. The name "." has no steps and the last element ".".
func splitName(name string) (steps []string, last string, err error) {
	if !validName(name) {
		return nil, "", fs.ErrInvalid
	}
	all := strings.Split(name, "/")
	return all[:len(all)-1], all[len(all)-1], nil
}
