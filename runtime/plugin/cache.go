package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/tierd/tierd/runtime/plugin/meter"
	"github.com/tierd/tierd/runtime/vfs"
)

// The cache has one folder for each module, named by a key that covers the module and everything
// that its compilation depends on:
//
//	<key>/module.wasm     what the engine is given
//	<key>/names.json      the names of the exports that the rewriting added
//	<key>/wazero-.../...  the native code that it finds for it
//	<key>/seal.json       size and CRC-32C of every other file, by its slash-separated path, and
//	                      the key, as "."
//
// The seal is written last. A folder whose files are not exactly what its seal says, be it by a
// crash, by damage or by a copy to another module's place, is removed and made again: the engine is
// never handed what it would have to find damaged itself, nor a module for another. A checksum is
// enough for that, and a cryptographic hash would be no more: who can write here can write the
// seal.
//
// An engine decodes and validates a module also where it has its native code already, and with a
// Go plugin that is most of the work. So what it is given is the skeleton, whose functions merely
// trap, and the code of the rewritten module lies where it looks for the skeleton's. Should it not
// look there, on another processor perhaps, then it compiles the skeleton and adds a file, and the
// folder is not what its seal says. The interpreter keeps nothing: it is given the rewritten module
// itself.
const (
	cacheVersion = 2
	moduleFile   = "module.wasm"
	namesFile    = "names.json"
	sealFile     = "seal.json"
	enginePath   = "github.com/tetratelabs/wazero"
	sealBytesMax = 1 << 16
)

// cacheKey names the folder of a module. It depends on the memory limit because a module that
// asks for more is refused before it gets into the cache.
func (c *code) cacheKey(o *Options) string {
	engine := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == enginePath {
				engine = d.Version
			}
		}
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s %s %s %d %d", cacheVersion, meter.Version,
		ABIVersion, engine, runtime.GOARCH, c.digest, o.Engine, c.limits.MemoryPages))
	return hex.EncodeToString(h[:])
}

// fromCache reports whether the module came from the folder. Somebody else may take the folder away
// meanwhile, or make it anew: where the engine then did not find the native code, it has compiled
// the skeleton, and put that into the same place. So the files must be the same before and after.
func (c *code) fromCache(dir string, o *Options) bool {
	before := filesOf(dir)
	sealed, n, module, ok := openSealed(dir)
	if !ok {
		return false
	}
	engine := *o
	for path := range sealed {
		if strings.Contains(path, "/") { // it is native code, and of use to the compiler alone
			engine.Engine = EngineCompiler
		}
	}
	c.names = n
	if err := c.compile(module, &engine, dir); err != nil {
		return false
	}
	after := filesOf(dir)
	same := maps.EqualFunc(before, after, sameFile)
	for path := range after {
		if _, ok := sealed[path]; !ok {
			_ = os.Remove(filepath.Join(dir, path)) // of no use to anybody
		}
	}
	if !same {
		_ = c.close() // another one is made instead
	}
	return same
}

// sameFile reports whether nobody replaced or changed a file between two looks at it.
func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// filesOf are the files below dir but the seal.
func filesOf(dir string) map[string]fs.FileInfo {
	files := map[string]fs.FileInfo{}
	for _, path := range filesBelow(dir) {
		if info, err := os.Lstat(filepath.Join(dir, path)); err == nil {
			files[path] = info
		}
	}
	return files
}

// fillCache compiles the module into a new folder and seals it.
func (c *code) fillCache(dir string, m *meter.Metered, o *Options) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := c.compile(m.Wasm, o, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	module, native, err := c.passOff(dir, m, o)
	if err == nil {
		err = writeSealed(dir, c.names, module, native)
	}
	if err != nil {
		return errors.Join(err, c.close(), os.RemoveAll(dir))
	}
	return nil
}

// passOff renames the native code of the rewritten module, which the engine has put into the
// folder, to what the engine calls that of the skeleton, and returns the skeleton, and where the
// native code lies with its checksum. Where there is none it returns the rewritten module.
func (c *code) passOff(dir string, m *meter.Metered, o *Options) (
	module []byte, native map[string]string, err error,
) {
	have := filesBelow(dir)
	if len(have) == 0 {
		return m.Wasm, nil, nil
	}
	sums, err := checksums(dir)
	if err != nil {
		return nil, nil, err
	}
	aside, err := os.MkdirTemp(dir, "skeleton-")
	if err != nil {
		return nil, nil, err
	}
	skeleton := &code{limits: c.limits}
	if err := skeleton.compile(m.Skeleton, o, aside); err != nil {
		return nil, nil, err
	}
	named := filesBelow(aside)
	if len(have) != 1 || len(named) != 1 || path.Dir(have[0]) != path.Dir(named[0]) ||
		have[0] == named[0] { // somebody else is at work here
		return nil, nil, errors.Join(fmt.Errorf("the engine wrote %q and %q, want a file each", have,
			named), skeleton.close())
	}
	return m.Skeleton, map[string]string{named[0]: sums[have[0]]},
		errors.Join(skeleton.close(), os.RemoveAll(aside),
			os.Rename(filepath.Join(dir, have[0]), filepath.Join(dir, named[0])))
}

// filesBelow lists the files below dir but the seal, by their paths from there. What cannot be read
// is left out: whoever compares with a seal finds it missing.
func filesBelow(dir string) (paths []string) {
	_ = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path != sealFile {
			paths = append(paths, path)
		}
		return nil
	})
	return paths
}

// openSealed reads a folder if it is whole.
func openSealed(dir string) (sealed map[string]string, n names, module []byte, ok bool) {
	text, err := vfs.ReadRegular(filepath.Join(dir, sealFile), sealBytesMax)
	if err != nil || json.Unmarshal(text, &sealed) != nil {
		return nil, names{}, nil, false
	}
	files, err := checksums(dir)
	if err != nil || !maps.Equal(files, sealed) {
		return nil, names{}, nil, false
	}
	text, err = os.ReadFile(filepath.Join(dir, namesFile))
	if err != nil || json.Unmarshal(text, &n) != nil {
		return nil, names{}, nil, false
	}
	module, err = os.ReadFile(filepath.Join(dir, moduleFile))
	return sealed, n, module, err == nil
}

// writeSealed writes what the engine will be given, and seals the folder, if the native code in it
// is what this process has put there. It need not survive a crash: what is not whole is made again.
func writeSealed(dir string, n names, module []byte, native map[string]string) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, namesFile), text, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, moduleFile), module, 0o600); err != nil {
		return err
	}
	files, err := checksums(dir)
	if err != nil {
		return err
	}
	for path, sum := range native {
		if files[path] != sum { // somebody else is at work here
			return fmt.Errorf("%s is %q, want %q", path, files[path], sum)
		}
	}
	if text, err = json.Marshal(files); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sealFile), text, 0o600)
}

// checksums sums up every file below dir but the seal, and names dir. What is no regular file is an
// error: a pipe would hold up the start for ever.
func checksums(dir string) (map[string]string, error) {
	files := map[string]string{".": filepath.Base(dir)}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == sealFile {
			return err
		}
		if !d.Type().IsRegular() {
			return &fs.PathError{Op: "read", Path: path, Err: errors.New("it is no regular file")}
		}
		f, err := root.Open(path)
		if err != nil {
			return err
		}
		sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
		size, err := io.Copy(sum, f)
		files[path] = fmt.Sprintf("%d bytes, %08x", size, sum.Sum32())
		return errors.Join(err, f.Close())
	})
	return files, err
}

// PruneCache removes what the cache holds of modules that are not in the set. Folders that the
// cache did not make are left alone.
func (s *Set) PruneCache() error {
	if s.options.CacheDir == "" {
		return nil
	}
	used := map[string]bool{}
	for _, c := range s.codes {
		used[c.cacheKey(&s.options)] = true
	}
	entries, err := os.ReadDir(s.options.CacheDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("plugin cache: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() && !used[e.Name()] && len(e.Name()) == 2*sha256.Size &&
			strings.Trim(e.Name(), "0123456789abcdef") == "" {
			errs = append(errs, os.RemoveAll(filepath.Join(s.options.CacheDir, e.Name())))
		}
	}
	return errors.Join(errs...)
}
