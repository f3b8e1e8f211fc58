package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/tierd/tierd/runtime/plugin/internal/asm"
	"github.com/tierd/tierd/runtime/plugin/meter"
)

// with returns a guest after f has worked on it.
func with(f func(*guest)) []byte {
	g := &guest{}
	f(g)
	return g.build()
}

// TestLoadRefuses: each kind of module that cannot be a plugin, with what an operator reads.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	i32 := asm.Types(asm.I32)
	cases := []struct {
		name string
		wasm []byte
		want string
	}{
		{"empty file", nil, "not a WebAssembly module"},
		{"not Wasm", []byte("#!/bin/sh\n"), "it does not begin with \\0asm"},
		{"cut short", with(func(*guest) {})[:60], "malformed WebAssembly module"},
		{"a later version of the ABI", with(func(g *guest) {
			g.noMarker = true
			g.ExportFunc("tierd_abi_v2", g.Func(nil, nil, nil))
		}), "it speaks ABI v2, this tierd speaks v1"},
		{"no plugin at all", with(func(g *guest) { g.noMarker = true }), "it is no tierd plugin"},
		{"no tierd_alloc", with(func(g *guest) { g.withoutAlloc = true }),
			"it does not export the function tierd_alloc (i32) -> (i32)"},
		{"no tierd_configure", with(func(g *guest) { g.withoutConfigure = true }),
			"it does not export the function tierd_configure (i32, i32) -> (i32)"},
		{"no tierd_select", with(func(g *guest) { g.withoutSelect = true }),
			"it does not export the function tierd_select (i32, i32) -> (i64)"},
		{"another tierd_select", with(func(g *guest) { g.strangeSelect = true }),
			"its tierd_select has the signature (i32) -> (i32), want (i32, i32) -> (i64)"},
		{"no memory", with(func(g *guest) { g.noMemory = true }),
			`it does not export its memory as "memory"`},
		{"a command", with(func(g *guest) { g.ExportFunc("_start", g.Func(nil, nil, nil)) }),
			"it is a command"},
		{"_initialize with a parameter", with(func(g *guest) {
			g.ExportFunc("_initialize", g.Func(i32, nil, nil))
		}), "its _initialize has the signature (i32) -> (), want () -> ()"},
		{"imports a socket", with(func(g *guest) { g.ImportFunc("env", "connect", i32, i32) }),
			"it imports env.connect, which plugins are not given"},
		{"imports an unknown WASI function", with(func(g *guest) {
			g.ImportFunc("wasi_snapshot_preview1", "sock_open", i32, i32)
		}), "it imports wasi_snapshot_preview1.sock_open"},
		{"imports a WASI function of another type", with(func(g *guest) {
			g.ImportFunc("wasi_snapshot_preview1", "fd_close", nil, i32)
		}), "it imports wasi_snapshot_preview1.fd_close as () -> (i32), want (i32) -> (i32)"},
		{"imports a global", with(func(g *guest) { g.Import("env", "g", 3, asm.I32, 0) }),
			"it imports the global env.g"},
		{"imports its memory", with(func(g *guest) {
			g.Import("env", "memory", 2, 0, 1)
			g.noMemory = true
		}), "it imports the memory env.memory"},
		{"a large memory", with(func(g *guest) {
			g.noMemory = true
			g.Memory(17, -1)
			g.Export("memory", 2, 0)
		}), "it begins with 17 pages of memory (1 MiB), the limit is 16 (1 MiB)"},
		{"a huge table", with(func(g *guest) { g.Table(1 << 31) }),
			"a table has 2147483648 entries"},
		{"SIMD", with(func(g *guest) { g.choose = []any{0xfd, 12} }), "uses fixed-width SIMD"},
		{"wrong types", with(func(g *guest) { g.choose = []any{asm.I32Const(1)} }),
			"the module is not valid"},
		{"33 MiB", append(with(func(*guest) {}), make([]byte, 33<<20)...), "the limit is 33554432"},
		{"a start function that never ends", with(func(g *guest) { g.start = forever() }),
			"fuel: it used up its fuel in function 4 < tierd_start"},
		{"an _initialize that never ends", with(func(g *guest) { g.initialize = forever() }),
			"it used up its fuel in function 4 < _initialize"},
		{"a start function that traps", with(func(g *guest) { g.start = []any{asm.Unreachable} }),
			"trap: unreachable in function 4 < tierd_start"},
		{"data outside of its memory", with(func(g *guest) { g.Data(pages<<16, []byte{1}) }),
			"start: instantiate: "},
		{"a configuration that it refuses",
			with(func(g *guest) { g.configure = []any{asm.I32Const(7)} }),
			"configure: it answered 7"},
		{"a tierd_configure that never ends", with(func(g *guest) { g.configure = forever() }),
			"it used up its fuel in function 2 < tierd_configure"},
		{"memory at 0", with(func(g *guest) { g.alloc = []any{asm.I32Const(0)} }),
			"memory: tierd_alloc("},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Load([]Spec{spec("bad", c.wasm)}, Options{Limits: quick})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it was loaded"), s.Close()))
			}
			if text := err.Error(); !strings.Contains(text, c.want) ||
				!strings.HasPrefix(text, "plugin bad: ") {
				t.Errorf("%v; want %q in it", err, c.want)
			}
		})
	}
}

// TestLoadAllOrNothing: one bad plugin refuses the generation, and every bad one is named.
func TestLoadAllOrNothing(t *testing.T) {
	t.Parallel()
	good := says([]int64{1})
	pinned := spec("pinned", good)
	pinned.SHA256 = Digest([]byte("another"))
	open := spec("open", good)
	open.SHA256 = ""
	garbled := spec("garbled", good)
	garbled.Config = []byte("{")
	specs := []Spec{spec("good", good), pinned, open, garbled, spec("good", good), spec("", good)}
	_, err := Load(specs, Options{})
	for _, want := range []string{
		"plugin pinned: the file's sha256 is " + Digest(good) + ", the configuration pins " +
			pinned.SHA256,
		"plugin open: sha256 is not set; a plugin is pinned by it. The file's is " + Digest(good),
		"plugin garbled: the configuration is not JSON",
		`plugin "good": want a name of its own`,
		`plugin "": want a name of its own`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %q in it", err, want)
		}
	}
	many := make([]Spec, PluginsMax+1)
	for i := range many {
		many[i] = spec(fmt.Sprint("p", i), good)
	}
	if _, err := Load(many, Options{}); err == nil ||
		err.Error() != "17 plugins are configured, the limit is 16" {
		t.Errorf("17 plugins: %v", err)
	}
	s, err := Load(many[:PluginsMax], Options{})
	if err != nil || len(s.Plugins()) != PluginsMax || s.Close() != nil {
		t.Errorf("16 plugins: %v", err)
	}
}

func TestPinIgnoresCase(t *testing.T) {
	t.Parallel()
	p := spec("p", says(nil))
	p.SHA256 = strings.ToUpper(p.SHA256)
	s, err := Load([]Spec{p}, Options{})
	if err != nil || s.Close() != nil {
		t.Error(err)
	}
}

func TestReadModuleRefusesLargeFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "large.wasm")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(50<<20), f.Close()); err != nil { // a sparse file
		t.Fatal(err)
	}
	if _, err := ReadModule(path); !errors.Is(err, meter.ErrTooLarge) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("a file of 50 MB: %v", err)
	}
	if _, err := ReadModule(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// TestModuleThatNamesTheFuel: a plugin cannot reach the globals that count, by whatever name.
func TestModuleThatNamesTheFuel(t *testing.T) {
	t.Parallel()
	g := &guest{}
	own := g.Global(asm.I64, asm.I64Const(1<<60))
	g.Export("tierd_fuel", 3, own)
	g.Export("tierd_stack", 3, own)
	g.choose = forever(asm.I64Const(1<<60), asm.GlobalSet(own))
	w := worker(t, Options{}, g.build())
	if r := ask(w, batch(1)); len(r.Faults) != 1 || r.Faults[0].Kind != FaultFuel {
		t.Errorf("faults %+v", r.Faults)
	}
}

// TestCache: what is compiled is kept, and what is damaged in the cache is made again.
func TestCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	wasm := says([]int64{42})
	load := func(wantCached bool, what string) {
		t.Helper()
		s, err := Load([]Spec{spec("p", wasm)}, Options{CacheDir: dir})
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := s.Plugins()[0].FromCache; got != wantCached {
			t.Errorf("%s: from the cache: %v, want %v", what, got, wantCached)
		}
		w := s.NewWorker()
		if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != 42 {
			t.Errorf("%s: faults %v", what, r.Faults)
		}
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	load(false, "first")
	load(true, "second")
	files, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(files) != 4 {
		t.Fatalf("files of the cache: %v, %v", files, err)
	}
	inner, err := filepath.Glob(filepath.Join(dir, "*", "wazero*", "*"))
	if err != nil || len(inner) != 1 {
		t.Fatalf("files of the engine: %v, %v", inner, err)
	}
	for _, file := range append(files, inner...) {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the engine's folder
		}
		damaged := bytes.Clone(content)
		damaged[len(damaged)/2] ^= 0x55
		for what, now := range map[string][]byte{"changed": damaged,
			"cut": content[:len(content)/2], "empty": {}} {
			if err := os.WriteFile(file, now, 0o600); err != nil {
				t.Fatal(err)
			}
			load(false, filepath.Base(file)+" "+what)
			load(true, filepath.Base(file)+" mended")
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		load(false, filepath.Base(file)+" gone")
	}
	stranger := filepath.Join(filepath.Dir(files[0]), "stranger")
	if err := os.WriteFile(stranger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	load(false, "a stranger in the folder")
}

// TestCacheOfAnother: what the cache has of one module is never run as another, also where whole
// folders changed places.
func TestCacheOfAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	specs := []Spec{spec("a", says([]int64{1})), spec("b", says([]int64{2}))}
	load := func() {
		t.Helper()
		s, err := Load(specs, Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		w := s.NewWorker()
		if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != 1 || r.scores[1][0] != 2 {
			t.Errorf("a says %d, b says %d, faults %v", r.scores[0][0], r.scores[1][0], r.Faults)
		}
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	load()
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(folders) != 2 {
		t.Fatalf("folders %v, %v", folders, err)
	}
	aside := filepath.Join(dir, "aside")
	for _, names := range [][2]string{{folders[0], aside}, {folders[1], folders[0]},
		{aside, folders[1]}} {
		if err := os.Rename(names[0], names[1]); err != nil {
			t.Fatal(err)
		}
	}
	load()
}

// TestCacheOfPipes: a pipe in the cache holds up nobody.
func TestCacheOfPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	loadCached(t, Options{CacheDir: dir}, false)
	for _, name := range []string{"seal.json", "module.wasm", "names.json"} {
		paths, err := filepath.Glob(filepath.Join(dir, "*", name))
		if err != nil || len(paths) != 1 {
			t.Fatalf("%s: %v, %v", name, paths, err)
		}
		if err := errors.Join(os.Remove(paths[0]), syscall.Mkfifo(paths[0], 0o600)); err != nil {
			t.Fatal(err)
		}
		loadCached(t, Options{CacheDir: dir}, false)
		loadCached(t, Options{CacheDir: dir}, true)
	}
}

// TestCacheIsTheSameCode: what comes from the cache answers, fails and counts as what was compiled,
// in each engine.
func TestCacheIsTheSameCode(t *testing.T) {
	t.Parallel()
	p := spec("imp", readModule(t, filepath.Join(modules, "c-imp.wasm")))
	for _, mood := range []string{"score", "trap", "spin", "recurse"} {
		p.Config = []byte(`{"moods": ["` + mood + `"], "seed": 1}`)
		for _, e := range []Engine{EngineCompiler, EngineInterpreter} {
			dir := t.TempDir()
			var seen []string
			for k := range 2 {
				s, err := Load([]Spec{p}, Options{CacheDir: dir, Engine: e,
					Limits: Limits{MemoryPages: 64, BatchFuel: 1e6}})
				if err != nil {
					t.Fatal(err)
				}
				if got := s.Plugins()[0]; got.FromCache != (k == 1) || got.CacheErr != nil {
					t.Errorf("%s, engine %d, load %d: %+v", mood, e, k, got)
				}
				w := s.NewWorker()
				r := ask(w, batch(3, 3))
				seen = append(seen, fmt.Sprint(r.scores, r.Fuel, r.Faults))
				w.Close()
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			if seen[0] != seen[1] {
				t.Errorf("%s, engine %d: first %s, from the cache %s", mood, e, seen[0], seen[1])
			}
		}
	}
}

// loadCached loads a plugin that says 42, and sees whether it came from the cache and says so.
func loadCached(t *testing.T, o Options, wantCached bool) Loaded {
	t.Helper()
	s, err := Load([]Spec{spec("p", says([]int64{42}))}, o)
	if err != nil {
		t.Fatal(err)
	}
	p := s.Plugins()[0]
	if p.FromCache != wantCached {
		t.Errorf("frozen %v: %+v, want from the cache: %v", o.CacheFrozen, p, wantCached)
	}
	w := s.NewWorker()
	if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != 42 {
		t.Errorf("faults %v", r.Faults)
	}
	w.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return p
}

// TestCacheOfAnotherProcessor: code that the engine does not look for is not taken for the
// plugin's, and an engine that compiles what it should have found leaves nothing behind.
func TestCacheOfAnotherProcessor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	load := func(frozen, wantCached bool) {
		t.Helper()
		loadCached(t, Options{CacheDir: dir, CacheFrozen: frozen, Engine: EngineCompiler}, wantCached)
	}
	load(false, false)
	code, err := filepath.Glob(filepath.Join(dir, "*", "wazero*", "*"))
	if err != nil || len(code) != 1 {
		t.Fatalf("files of the engine: %v, %v", code, err)
	}
	folder := filepath.Dir(filepath.Dir(code[0]))
	_, n, module, ok := openSealed(folder)
	err = errors.Join(os.Rename(code[0], code[0]+"0"), writeSealed(folder, n, module, nil))
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	before := filesBelow(dir)
	load(true, false)
	if after := filesBelow(dir); !slices.Equal(before, after) {
		t.Errorf("a frozen cache has %q, and had %q", after, before)
	}
	load(false, false)
	load(true, true)
}

// TestCacheFrozen: what is in the cache is used, and nothing is written.
func TestCacheFrozen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cache")
	load := func(frozen, wantCached bool) {
		t.Helper()
		p := loadCached(t, Options{CacheDir: dir, CacheFrozen: frozen}, wantCached)
		if p.CacheErr != nil {
			t.Errorf("frozen %v: %v", frozen, p.CacheErr)
		}
	}
	load(true, false)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a frozen cache was made: %v", err)
	}
	load(false, false)
	load(true, true)
	seals, err := filepath.Glob(filepath.Join(dir, "*", "seal.json"))
	if err != nil || len(seals) != 1 {
		t.Fatalf("seals %v, %v", seals, err)
	}
	if err := os.Remove(seals[0]); err != nil {
		t.Fatal(err)
	}
	load(true, false)
	if _, err := os.Stat(seals[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a frozen cache was mended: %v", err)
	}
}

// TestCacheThatCannotBeWritten: the plugin works all the same.
func TestCacheThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load([]Spec{spec("p", says([]int64{42}))},
		Options{CacheDir: filepath.Join(file, "cache")})
	if err != nil {
		t.Fatal(err)
	}
	if p := s.Plugins()[0]; p.FromCache || p.CacheErr == nil {
		t.Errorf("%+v; want why the cache could not be used", p)
	}
	w := s.NewWorker()
	if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != 42 {
		t.Errorf("faults %v", r.Faults)
	}
	w.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestCacheIsShared: sets that are loaded at the same time, and that prune what the others use,
// may cost each other time, and nothing else. Fuel is counted the same whether a module came from
// the cache or not.
func TestCacheIsShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for k := range int64(4) {
		all.Go(func() {
			for range 8 {
				s, err := Load([]Spec{spec("p", says([]int64{k / 2}))}, Options{CacheDir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				w := s.NewWorker()
				if r := ask(w, batch(1)); len(r.Faults) != 0 || r.scores[0][0] != k/2 ||
					r.Fuel[0] != 9 {
					t.Errorf("scores %d, fuel %d, faults %v; want %d, 9 and none",
						r.scores[0], r.Fuel, r.Faults, k/2)
				}
				w.Close()
				_ = s.PruneCache() // what somebody writes to just now it removes another time
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestPruneCache(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "notes")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		s, err := Load([]Spec{spec("p", says([]int64{i}))}, Options{CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			err = s.PruneCache()
		}
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left in the cache: %v, %v; want one module and what is not the cache's",
			left, err)
	}
	unused := Set{options: Options{CacheDir: filepath.Join(dir, "never made")}}
	if err := unused.PruneCache(); err != nil {
		t.Error(err)
	}
}
