package vfs

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/tierd/tierd/runtime/tier"
)

// Mem is a directory of a file system in memory, for tests and the simulator. It is deterministic:
// the same calls have the same results, in whatever order Go iterates its maps.
//
// NewMem returns the root; Sub returns directories of the same file system.
type Mem struct {
	*memFS
	dir  *node
	path string // from the root; "." for the root
}

var _ Dir = (*Mem)(nil)

// memFS is the state that all directories and files of one file system share.
type memFS struct {
	mu        sync.Mutex
	root      *node
	clock     func() tier.Time
	lastInode uint64
	pending   []change // of names, in the order they were made; see durable.go
	fault     Fault
	calls     int
	changes   uint64
	below     map[string]uint64 // of them, those below a directory of the root
	atRoot    uint64            // of them, those of the root and of names in it
	moved     bool              // something went from one directory of the root to elsewhere
	crashed   bool
	capacity  int64 // bytes of all files together; 0 is no bound
}

// node is an inode: a directory, a file or a link.
type node struct {
	inode uint64
	mode  fs.FileMode
	mtime tier.Time

	// Of a directory: the names as calls see them, and as a crash would leave them at least.
	children, durable map[string]*node
	removed           bool

	// Of a file: the bytes likewise. Bytes are appended in place, so that both may share memory;
	// whatever else changes them copies first.
	data, synced []byte
	// syncBroken is set by an fsync that reported an error. The kernel has marked the pages clean:
	// a later fsync succeeds and writes nothing.
	syncBroken bool

	target string // of a link
}

// NewMem returns an empty file system whose mtimes come from clock.
func NewMem(clock func() tier.Time) *Mem {
	m := &memFS{clock: clock, below: map[string]uint64{}}
	m.root = m.newNode(fs.ModeDir | 0o755)
	return m.rootDir()
}

func (m *memFS) rootDir() *Mem { return &Mem{memFS: m, dir: m.root, path: "."} }

func (m *memFS) newNode(mode fs.FileMode) *node {
	m.lastInode++
	n := &node{inode: m.lastInode, mode: mode, mtime: m.clock()}
	if mode.IsDir() {
		n.children, n.durable = map[string]*node{}, map[string]*node{}
	}
	return n
}

func (n *node) info(name string) Info {
	size := int64(len(n.data))
	if n.mode&fs.ModeSymlink != 0 {
		size = int64(len(n.target))
	}
	return Info{
		Name: name,
		Mode: n.mode,
		Stat: tier.Stat{Inode: n.inode, Size: size, ModTime: n.mtime},
	}
}

// Permission bits of the owner, which is who Mem takes its user for.
const (
	mayRead   = 0o400
	mayWrite  = 0o200
	maySearch = 0o100
)

func (n *node) may(bits fs.FileMode) error {
	if n.mode&bits != bits {
		return syscall.EACCES
	}
	return nil
}

// Open implements Dir.
func (d *Mem) Open(name string) (File, error) {
	var f *memFile
	err := d.do(OpOpen, name, "", func() error {
		n, err := d.lookupFile(name, mayRead)
		f = &memFile{fs: d.memFS, node: n, path: d.abs(name)}
		return err
	})
	return orNil(f, err)
}

// Create implements Dir.
func (d *Mem) Create(name string) (File, error) {
	var f *memFile
	err := d.do(OpCreate, name, "", func() error {
		n, err := d.add(name, 0o644)
		f = &memFile{fs: d.memFS, node: n, path: d.abs(name), writable: true}
		return err
	})
	return orNil(f, err)
}

// Append implements Dir.
func (d *Mem) Append(name string) (File, error) {
	var f *memFile
	err := d.do(OpAppend, name, "", func() error {
		n, err := d.lookupFile(name, mayRead|mayWrite)
		if err == syscall.ENOENT {
			n, err = d.add(name, 0o644)
		}
		f = &memFile{fs: d.memFS, node: n, path: d.abs(name), writable: true, append: true}
		return err
	})
	return orNil(f, err)
}

// orNil keeps a nil *memFile out of a non-nil File.
func orNil(f *memFile, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Stat implements Dir.
func (d *Mem) Stat(name string) (info Info, err error) {
	err = d.do(OpStat, name, "", func() error {
		n, err := d.lookup(name)
		if err == nil {
			info = n.info(path.Base(name))
			info.Dir = d.dirOf(path.Dir(name), n)
		}
		return err
	})
	return info, err
}

// dirOf is which directory n is, or leads to below d where it is a link in the directory dir.
func (d *Mem) dirOf(dir string, n *node) DirID {
	if n.mode.Type() == fs.ModeSymlink {
		to, err := d.lookup(path.Join(dir, n.target))
		if err != nil {
			return DirID{}
		}
		n = to
	}
	if !n.mode.IsDir() {
		return DirID{}
	}
	return DirID{Device: 1, Inode: n.inode}
}

// List implements Dir.
func (d *Mem) List(name string) (infos []Info, err error) {
	err = d.do(OpList, name, "", func() error {
		n, err := d.lookupDir(name, mayRead|maySearch)
		if err != nil {
			return err
		}
		infos = make([]Info, 0, len(n.children))
		for base, child := range n.children {
			info := child.info(base)
			info.Dir = d.dirOf(name, child)
			infos = append(infos, info)
		}
		slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return infos, err
}

// Names implements Dir.
func (d *Mem) Names(name string) (names []string, err error) {
	infos, err := d.List(name)
	for _, i := range infos {
		names = append(names, i.Name)
	}
	return names, err
}

// Mkdir implements Dir.
func (d *Mem) Mkdir(name string) error {
	return d.do(OpMkdir, name, "", func() error {
		_, err := d.add(name, fs.ModeDir|0o755)
		return err
	})
}

// Symlink makes a link, for tests that nothing follows it.
func (d *Mem) Symlink(target, name string) error {
	return d.do(OpSymlink, name, "", func() error {
		n, err := d.add(name, fs.ModeSymlink|0o777)
		if err == nil {
			n.target = target
		}
		return err
	})
}

// Chmod sets the permission bits of a file or directory, for tests of refused access. They are
// durable at once.
func (d *Mem) Chmod(name string, perm fs.FileMode) error {
	return d.do(OpChmod, name, "", func() error {
		n, err := d.lookup(name)
		if err == nil {
			n.mode = n.mode.Type() | perm.Perm()
		}
		return err
	})
}

// Rename implements Dir.
func (d *Mem) Rename(from, to string) error {
	return d.do(OpRename, from, to, func() error { return d.move(from, to, false) })
}

// Replace implements Dir.
func (d *Mem) Replace(from, to string) error {
	return d.do(OpReplace, from, to, func() error { return d.move(from, to, true) })
}

func (d *Mem) move(from, to string, replace bool) error {
	fromDir, fromBase, err := d.parent(from)
	if err != nil {
		return err
	}
	toDir, toBase, err := d.parent(to)
	if err != nil {
		return err
	}
	n, old := fromDir.children[fromBase], toDir.children[toBase]
	switch {
	case n == nil:
		return syscall.ENOENT
	case old != nil && !replace:
		return syscall.EEXIST
	case n == old:
		return nil
	case fromDir.may(mayWrite|maySearch) != nil || toDir.may(mayWrite|maySearch) != nil:
		return syscall.EACCES
	case n.mode.IsDir() && d.below(n, toDir):
		return syscall.EINVAL
	case old != nil && old.mode.IsDir():
		return syscall.EISDIR
	case old != nil && n.mode.IsDir():
		return syscall.ENOTDIR
	}
	added, gone := binding{toDir, toBase, n}, binding{fromDir, fromBase, nil}
	if fromDir == toDir {
		label := "rename " + d.abs(from) + " to " + d.abs(to)
		d.change(change{label: label, bindings: []binding{gone, added}})
		return nil
	}
	// Each comes after the other's name, so that the file is never without one.
	d.change(change{
		label:    "create " + d.abs(to),
		bindings: []binding{added},
		after:    []key{gone.key()},
	})
	d.change(change{label: "remove " + d.abs(from), bindings: []binding{gone}})
	return nil
}

// Link implements Dir.
func (d *Mem) Link(from, to string) error {
	return d.do(OpLink, from, to, func() error {
		n, err := d.lookupFile(from, 0)
		if err != nil {
			return err
		}
		dir, base, err := d.parent(to)
		switch {
		case err != nil:
			return err
		case base == "." || dir.children[base] != nil:
			return syscall.EEXIST
		case dir.may(mayWrite|maySearch) != nil:
			return syscall.EACCES
		}
		d.change(change{label: "create " + d.abs(to), bindings: []binding{{dir, base, n}}})
		return nil
	})
}

// below reports whether dir is ancestor or lies below it.
func (d *Mem) below(ancestor, dir *node) bool {
	if ancestor == dir {
		return true
	}
	for _, child := range ancestor.children {
		if child.mode.IsDir() && d.below(child, dir) {
			return true
		}
	}
	return false
}

// Remove implements Dir.
func (d *Mem) Remove(name string) error {
	return d.do(OpRemove, name, "", func() error { return d.remove(name, false) })
}

// RemoveDir implements Dir.
func (d *Mem) RemoveDir(name string) error {
	return d.do(OpRemoveDir, name, "", func() error { return d.remove(name, true) })
}

func (d *Mem) remove(name string, onlyDir bool) error {
	parent, base, err := d.parent(name)
	if err != nil {
		return err
	}
	n := parent.children[base]
	switch {
	case base == ".":
		return syscall.EINVAL
	case n == nil:
		return syscall.ENOENT
	case onlyDir && !n.mode.IsDir():
		return syscall.ENOTDIR
	case len(n.children) > 0:
		return syscall.ENOTEMPTY
	}
	if err := parent.may(mayWrite | maySearch); err != nil {
		return err
	}
	n.removed = true
	d.change(change{label: "remove " + d.abs(name), bindings: []binding{{parent, base, nil}}})
	return nil
}

// Sync implements Dir.
func (d *Mem) Sync(name string) error {
	return d.do(OpSyncDir, name, "", func() error {
		n, err := d.lookupDir(name, 0)
		if err == nil {
			d.syncNames(n)
		}
		return err
	})
}

// Sub implements Dir.
func (d *Mem) Sub(name string) (Dir, error) {
	sub := &Mem{memFS: d.memFS, path: d.abs(name)}
	err := d.do(OpSub, name, "", func() (err error) {
		sub.dir, err = d.lookupDir(name, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return sub, nil
}

// Close implements Dir. It gives nothing back: Mem holds no descriptor.
func (d *Mem) Close() error { return nil }

func (d *Mem) abs(name string) string {
	switch {
	case name == "." || !fs.ValidPath(name):
		return path.Join(d.path, name)
	case d.path == ".":
		return name
	}
	return d.path + "/" + name
}

// do performs one operation, or what the fault hook makes of it.
func (d *Mem) do(kind OpKind, name, to string, perform func() error) error {
	if to != "" {
		to = d.abs(to)
	}
	return d.perform(kind, d.abs(name), to, perform)
}

// parent returns the directory that name lies in, and the last element of name.
func (d *Mem) parent(name string) (*node, string, error) {
	if !validName(name) {
		return nil, "", fs.ErrInvalid
	}
	dir := d.dir
	for {
		step, rest, below := strings.Cut(name, "/")
		if !below {
			return dir, name, dir.may(maySearch)
		}
		if err := dir.may(maySearch); err != nil {
			return nil, "", err
		}
		dir = dir.children[step]
		switch {
		case dir == nil:
			return nil, "", syscall.ENOENT
		case dir.mode&fs.ModeSymlink != 0:
			return nil, "", errLink
		case !dir.mode.IsDir():
			return nil, "", syscall.ENOTDIR
		}
		name = rest
	}
}

func (d *Mem) lookup(name string) (*node, error) {
	dir, base, err := d.parent(name)
	if err != nil {
		return nil, err
	}
	if base == "." {
		return dir, nil
	}
	if dir.children[base] == nil {
		return nil, syscall.ENOENT
	}
	return dir.children[base], nil
}

func (d *Mem) lookupFile(name string, perm fs.FileMode) (*node, error) {
	n, err := d.lookup(name)
	switch {
	case err != nil:
		return nil, err
	case n.mode&fs.ModeSymlink != 0:
		return nil, errLink
	case !n.mode.IsRegular():
		return nil, ErrNotRegular
	}
	return n, n.may(perm)
}

func (d *Mem) lookupDir(name string, perm fs.FileMode) (*node, error) {
	n, err := d.lookup(name)
	switch {
	case err != nil:
		return nil, err
	case n.mode&fs.ModeSymlink != 0:
		return nil, errLink
	case !n.mode.IsDir():
		return nil, syscall.ENOTDIR
	}
	return n, n.may(perm)
}

// add makes a new node under a name that does not exist.
func (d *Mem) add(name string, mode fs.FileMode) (*node, error) {
	dir, base, err := d.parent(name)
	switch {
	case err != nil:
		return nil, err
	case base == "." || dir.children[base] != nil:
		return nil, syscall.EEXIST
	case dir.removed:
		return nil, syscall.ENOENT
	}
	if err := dir.may(mayWrite | maySearch); err != nil {
		return nil, err
	}
	n := d.newNode(mode)
	d.change(change{label: "create " + d.abs(name), bindings: []binding{{dir, base, n}}})
	return n, nil
}
