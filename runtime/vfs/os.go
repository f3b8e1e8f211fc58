//go:build unix

package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/tierd/tierd/runtime/tier"
)

// OS is a directory of the operating system. Every step of a name is opened relative to the
// directory before it and with O_NOFOLLOW, so that neither ".." nor a link, nor a link put in
// place at the wrong moment, leads elsewhere; where the kernel has a system call for all the steps
// at once, it is told to resolve no link. (os.Root is not enough: it follows links that stay below
// its root.)
type OS struct {
	dir  *os.File
	path string // as given to OpenOS, with the names given to Sub; for error texts only
	// dirMode is the mode of new directories; the process's umask takes bits away.
	dirMode fs.FileMode
}

var _ Dir = (*OS)(nil)

// OpenOS opens the directory at path. The path itself is the operator's and may hold links.
func OpenOS(path string) (*OS, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return &OS{dir: f, path: path, dirMode: 0o777}, nil
}

// fileMode is the mode of new files; the process's umask takes bits away.
const fileMode = 0o666

// Open implements Dir.
func (d *OS) Open(name string) (File, error) {
	return d.openFile("open", name, unix.O_RDONLY)
}

// Create implements Dir.
func (d *OS) Create(name string) (File, error) {
	return d.openFile("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

// Append implements Dir.
func (d *OS) Append(name string) (File, error) {
	return d.openFile("append", name, unix.O_RDWR|unix.O_CREAT|unix.O_APPEND)
}

func (d *OS) openFile(op, name string, flags int) (File, error) {
	var f *os.File
	err := d.at(op, name, func(dir int, base string) error {
		// O_NONBLOCK, so that a pipe in the place of a file blocks nobody.
		fd, err := openat(dir, base, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK)
		switch {
		case err == nil:
		case isLinkError(err):
			return errLink
		case errors.Is(err, unix.EISDIR), errors.Is(err, unix.ENXIO):
			return ErrNotRegular
		default:
			return err
		}
		var st unix.Stat_t
		if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
			return errors.Join(err, unix.Close(fd))
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return errors.Join(ErrNotRegular, unix.Close(fd))
		}
		f = os.NewFile(uintptr(fd), path.Join(d.path, name))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Stat implements Dir.
func (d *OS) Stat(name string) (info Info, err error) {
	err = d.at("stat", name, func(dir int, base string) error {
		info, err = statat(dir, base)
		return err
	})
	return info, err
}

// List implements Dir. An entry that goes away meanwhile is left out.
func (d *OS) List(name string) ([]Info, error) {
	var infos []Info
	err := d.inDir("list", name, func(f *os.File) error {
		names, err := f.Readdirnames(-1)
		if err != nil {
			return errors.Unwrap(err)
		}
		slices.Sort(names)
		infos = make([]Info, 0, len(names))
		return withFD(f, func(fd int) error {
			for _, name := range names {
				info, err := statat(fd, name)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					return err
				}
				infos = append(infos, info)
			}
			return nil
		})
	})
	return infos, err
}

// Names implements Dir.
func (d *OS) Names(name string) (names []string, err error) {
	err = d.inDir("list", name, func(f *os.File) error {
		if names, err = f.Readdirnames(-1); err != nil {
			return errors.Unwrap(err)
		}
		slices.Sort(names)
		return nil
	})
	return names, err
}

// Mkdir implements Dir.
func (d *OS) Mkdir(name string) error {
	return d.at("mkdir", name, func(dir int, base string) error {
		return retry(func() error { return unix.Mkdirat(dir, base, uint32(d.dirMode.Perm())) })
	})
}

// Rename implements Dir.
func (d *OS) Rename(from, to string) error {
	return d.pair("rename", from, to, renameNoReplace)
}

// Replace implements Dir.
func (d *OS) Replace(from, to string) error {
	return d.pair("replace", from, to, unix.Renameat)
}

// pair calls do with two names, each relative to the descriptor of its parent directory.
func (d *OS) pair(op, from, to string, do func(int, string, int, string) error) error {
	err := d.at(op, from, func(fromDir int, fromBase string) error {
		return d.at(op, to, func(toDir int, toBase string) error {
			return retry(func() error { return do(fromDir, fromBase, toDir, toBase) })
		})
	})
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) { // of either path: name both
		pathErr.Path = path.Join(d.path, from) + " to " + path.Join(d.path, to)
	}
	return err
}

// Link implements Dir.
func (d *OS) Link(from, to string) error {
	return d.pair("link", from, to, func(fromDir int, fromBase string, toDir int,
		toBase string) error {
		info, err := statat(fromDir, fromBase)
		if err == nil && !info.Regular() {
			err = ErrNotRegular
		}
		if err != nil {
			return err
		}
		return unix.Linkat(fromDir, fromBase, toDir, toBase, 0)
	})
}

// linkRename renames a file by linking and unlinking it, for file systems that cannot refuse to
// replace. Between the two the file has both names.
func linkRename(fromDir int, from string, toDir int, to string) error {
	err := retry(func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
	if err != nil {
		return err
	}
	return retry(func() error { return unix.Unlinkat(fromDir, from, 0) })
}

// Remove implements Dir.
func (d *OS) Remove(name string) error {
	return d.at("remove", name, func(dir int, base string) error {
		err := retry(func() error { return unix.Unlinkat(dir, base, 0) })
		// Of a directory, Linux says EISDIR and POSIX says EPERM.
		if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
			return err
		}
		rmdirErr := retry(func() error { return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR) })
		if errors.Is(rmdirErr, unix.ENOTDIR) {
			return err
		}
		return rmdirErr
	})
}

// RemoveDir implements Dir.
func (d *OS) RemoveDir(name string) error {
	return d.at("remove directory", name, func(dir int, base string) error {
		return retry(func() error { return unix.Unlinkat(dir, base, unix.AT_REMOVEDIR) })
	})
}

// Sync implements Dir.
func (d *OS) Sync(name string) error {
	return d.inDir("sync", name, func(f *os.File) error {
		if err := f.Sync(); err != nil {
			return errors.Unwrap(err)
		}
		return nil
	})
}

// Sub implements Dir.
func (d *OS) Sub(name string) (Dir, error) {
	f, err := d.openDir("open", name)
	if err != nil {
		return nil, err
	}
	return &OS{dir: f, path: path.Join(d.path, name), dirMode: d.dirMode}, nil
}

// Close implements Dir.
func (d *OS) Close() error { return d.dir.Close() }

// inDir calls do with the directory name, opened anew: it has a read position of its own.
func (d *OS) inDir(op, name string, do func(*os.File) error) error {
	f, err := d.openDir(op, name)
	if err != nil {
		return err
	}
	if err := errors.Join(do(f), f.Close()); err != nil {
		return d.pathError(op, name, err)
	}
	return nil
}

func (d *OS) openDir(op, name string) (f *os.File, err error) {
	err = d.at(op, name, func(dir int, base string) error {
		fd, err := opendirat(dir, base)
		if err == nil {
			f = os.NewFile(uintptr(fd), path.Join(d.path, name))
		}
		return err
	})
	return f, err
}

// at calls do with the descriptor of name's parent directory and the last element of name.
func (d *OS) at(op, name string, do func(dir int, base string) error) error {
	steps, base, err := splitName(name)
	if err != nil {
		return d.pathError(op, name, err)
	}
	err = withFD(d.dir, func(fd int) error {
		if len(steps) == 0 {
			return do(fd, base)
		}
		dir, err := descend(fd, steps)
		if err != nil {
			return err
		}
		return errors.Join(do(dir, base), unix.Close(dir))
	})
	return d.pathError(op, name, err)
}

// walk opens the directory that the steps lead to, one after the other.
func walk(fd int, steps []string) (dir int, err error) {
	dir = fd
	for _, step := range steps {
		next, err := opendirat(dir, step)
		if dir != fd {
			err = errors.Join(err, unix.Close(dir))
		}
		if err != nil {
			return -1, err
		}
		dir = next
	}
	return dir, nil
}

func (d *OS) pathError(op, name string, err error) error {
	var pathErr *fs.PathError
	if err == nil || errors.As(err, &pathErr) {
		return err
	}
	return &fs.PathError{Op: op, Path: path.Join(d.path, name), Err: err}
}

// withFD calls do with the descriptor of f and keeps it open meanwhile, whoever closes f.
func withFD(f *os.File, do func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var doErr error
	if conn.Control(func(fd uintptr) { doErr = do(int(fd)) }) != nil {
		return fs.ErrClosed // the only reason there is
	}
	return doErr
}

func openat(dir int, base string, flags int) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(dir, base, flags|unix.O_CLOEXEC, fileMode)
		return err
	})
	return fd, err
}

func opendirat(dir int, base string) (int, error) {
	fd, err := openat(dir, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if isLinkError(err) || errors.Is(err, unix.ENOTDIR) {
		if info, statErr := statat(dir, base); statErr == nil && info.Mode&fs.ModeSymlink != 0 {
			return -1, errLink
		}
	}
	return fd, err
}

// isLinkError reports whether err is what open says of a link under O_NOFOLLOW; the BSDs say
// EMLINK.
func isLinkError(err error) bool {
	return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK)
}

func statat(dir int, base string) (Info, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return Info{}, err
	}
	info := infoOf(base, &st)
	if info.Mode.Type() == fs.ModeSymlink {
		if err := retry(func() error { return unix.Fstatat(dir, base, &st, 0) }); err == nil {
			info.Dir = dirOf(&st)
		}
	}
	return info, nil
}

// dirOf is which directory it is; zero if it is none.
func dirOf(st *unix.Stat_t) DirID {
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return DirID{}
	}
	return DirID{Device: uint64(st.Dev), Inode: st.Ino}
}

func infoOf(base string, st *unix.Stat_t) Info {
	sec, nsec := st.Mtim.Unix()
	return Info{
		Name: base,
		Mode: modeOf(uint32(st.Mode)),
		Dir:  dirOf(st),
		Stat: tier.Stat{
			Inode:   st.Ino,
			Size:    st.Size,
			ModTime: tier.Time(sec*1e9 + nsec),
		},
	}
}

func modeOf(mode uint32) fs.FileMode {
	perm := fs.FileMode(mode & 0o777)
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return perm
	case unix.S_IFDIR:
		return perm | fs.ModeDir
	case unix.S_IFLNK:
		return perm | fs.ModeSymlink
	case unix.S_IFIFO:
		return perm | fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return perm | fs.ModeSocket
	default:
		return perm | fs.ModeDevice
	}
}

// retry repeats a system call that a signal interrupted. It ends: signals do.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// osFile is an open file. It keeps the fast paths of os.File, such as ReadFrom.
type osFile struct{ *os.File }

// Stat implements File.
func (f osFile) Stat() (info Info, err error) {
	err = withFD(f.File, func(fd int) error {
		var st unix.Stat_t
		if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
			return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
		}
		info = infoOf(path.Base(f.Name()), &st)
		return nil
	})
	return info, err
}

// DropCache implements File.
func (f osFile) DropCache(off, n int64) {
	// A hint: where it cannot be given, reading was right all the same.
	_ = withFD(f.File, func(fd int) error { return dropCache(fd, off, n) })
}
