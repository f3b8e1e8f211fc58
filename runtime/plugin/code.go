package plugin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/tierd/tierd/runtime/plugin/meter"
	"github.com/tierd/tierd/runtime/vfs"
)

// features is what modules may use: the core specification 2.0 without SIMD, whose results no
// plugin needs and whose code not every machine runs.
const features = api.CoreFeaturesV2 &^ api.CoreFeatureSIMD

// code is a plugin that is loaded: metered, compiled once, and able to make instances. It is safe
// for concurrent use.
type code struct {
	name     string
	node     string
	digest   string
	config   json.RawMessage
	limits   Limits
	log      func(Line)
	names    names
	cached   bool  // it came from the cache
	cacheErr error // why the cache could not keep it
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	cache    wazero.CompilationCache // nil without one
}

// names are the exports that meter added.
type names struct {
	Fuel  string `json:"fuel"`
	Stack string `json:"stack"`
	Start string `json:"start"`
}

// ReadModule reads a module's file, and refuses one that is too large without reading all of it.
func ReadModule(path string) ([]byte, error) {
	wasm, err := vfs.ReadRegular(path, meter.ModuleBytesMax)
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, fmt.Errorf("%s has more than %d bytes, the limit of a plugin: %w",
			path, meter.ModuleBytesMax, meter.ErrTooLarge)
	}
	return wasm, err
}

// Digest is the SHA-256 of a module as the configuration spells it.
func Digest(wasm []byte) string {
	h := sha256.Sum256(wasm)
	return hex.EncodeToString(h[:])
}

// load makes a plugin ready to run.
func load(spec Spec, o *Options) (c *code, err error) {
	// Decoders and compilers are large and meet bytes from outside here; whatever one of them
	// panics with refuses this plugin and nothing else.
	defer func() {
		if r := recover(); r != nil {
			c, err = nil, fmt.Errorf("the module breaks the compiler: %v", r)
		}
	}()
	if len(spec.Wasm) > meter.ModuleBytesMax {
		return nil, fmt.Errorf("the module has %d bytes, the limit is %d: %w",
			len(spec.Wasm), meter.ModuleBytesMax, meter.ErrTooLarge)
	}
	digest := Digest(spec.Wasm)
	if err := checkDigest(spec.SHA256, digest); err != nil {
		return nil, err
	}
	c = &code{name: spec.Name, node: o.Node, digest: digest, config: spec.Config, log: o.Log,
		limits: o.Limits.withDefaults()}
	if _, err := c.setup(nil); err != nil {
		return nil, err
	}
	return c, c.build(spec.Wasm, o)
}

// checkDigest compares the digest that the configuration pins with the module's own.
func checkDigest(pinned, digest string) error {
	switch {
	case pinned == "":
		return fmt.Errorf("sha256 is not set; a plugin is pinned by it. The file's is %s", digest)
	case !strings.EqualFold(pinned, digest):
		return fmt.Errorf("the file's sha256 is %s, the configuration pins %s", digest, pinned)
	}
	return nil
}

// build compiles the module, by way of the cache if there is one. A cache that cannot be used, on a
// full disk perhaps, costs time and not the plugin: why it could not stands in c.cacheErr.
func (c *code) build(wasm []byte, o *Options) error {
	dir := ""
	if o.CacheDir != "" {
		dir = filepath.Join(o.CacheDir, c.cacheKey(o))
		if c.cached = c.fromCache(dir, o); c.cached {
			return nil
		}
	}
	metered, err := c.prepare(wasm)
	if err != nil {
		return err
	}
	c.names = names{metered.Fuel, metered.Stack, metered.Start}
	if dir != "" && !o.CacheFrozen {
		if c.cacheErr = c.fillCache(dir, metered, o); c.cacheErr == nil {
			return nil
		}
	}
	return c.compile(metered.Wasm, o, "")
}

// prepare decodes, checks and validates a module, and rewrites it.
func (c *code) prepare(wasm []byte) (*meter.Metered, error) {
	m, err := meter.Parse(wasm)
	if err != nil {
		return nil, err
	}
	if err := checkContract(m, c.limits); err != nil {
		return nil, err
	}
	if err := validate(m.Sanitized()); err != nil {
		return nil, err
	}
	return m.Meter()
}

// validate has the engine check a module, with the interpreter, whose compilation is quick.
func validate(wasm []byte) (err error) {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().
		WithCoreFeatures(features).WithDebugInfoEnabled(false))
	defer func() { err = errors.Join(err, rt.Close(ctx)) }()
	if _, err := rt.CompileModule(ctx, wasm); err != nil {
		return fmt.Errorf("the module is not valid: %w", err)
	}
	return nil
}

// compile makes the runtime with its host functions, and compiles the metered module. What it
// compiles to is kept in dir if that is not empty.
func (c *code) compile(metered []byte, o *Options, dir string) error {
	ctx := context.Background()
	cfg := wazero.NewRuntimeConfig()
	switch o.Engine {
	case EngineCompiler:
		cfg = wazero.NewRuntimeConfigCompiler()
	case EngineInterpreter:
		cfg = wazero.NewRuntimeConfigInterpreter()
	}
	cfg = cfg.WithCoreFeatures(features).WithDebugInfoEnabled(false).
		WithMemoryLimitPages(uint32(c.limits.MemoryPages))
	if dir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return fmt.Errorf("plugin cache: %w", err)
		}
		c.cache = cache
		cfg = cfg.WithCompilationCache(cache)
	}
	c.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	compiled, err := c.runtime.CompileModule(ctx, metered)
	if err == nil {
		c.compiled = compiled
		err = c.provide(ctx, compiled.ImportedFunctions())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("compile: %w", err), c.close())
	}
	return nil
}

// provide instantiates the host functions that the module imports, all of which checkContract has
// found to be allowed.
func (c *code) provide(ctx context.Context, imports []api.FunctionDefinition) error {
	builders := map[string]wazero.HostModuleBuilder{}
	done := map[string]bool{}
	for _, im := range imports {
		module, name, _ := im.Import()
		full := module + "." + name
		if done[full] {
			continue
		}
		done[full] = true
		if builders[module] == nil {
			builders[module] = c.runtime.NewHostModuleBuilder(module)
		}
		f := hostFunctions[full]
		builders[module].NewFunctionBuilder().
			WithGoModuleFunction(f.handler(), valueTypes(f.params),
				valueTypes(f.results)).Export(name)
	}
	for module, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %s: %w", module, err)
		}
	}
	return nil
}

// close gives everything back, instances included.
func (c *code) close() error {
	ctx := context.Background()
	var errs []error
	if c.runtime != nil {
		errs = append(errs, c.runtime.Close(ctx))
	}
	if c.cache != nil {
		errs = append(errs, c.cache.Close(ctx))
	}
	c.runtime, c.cache = nil, nil
	return errors.Join(errs...)
}
