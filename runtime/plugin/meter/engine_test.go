package meter_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/tierd/tierd/runtime/plugin/meter"
)

const features = api.CoreFeaturesV2 &^ api.CoreFeatureSIMD

// engines are the two ways to run a module. They must agree.
func engines() map[string]wazero.RuntimeConfig {
	return map[string]wazero.RuntimeConfig{
		"compiler":    wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features),
		"interpreter": wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features),
	}
}

// program is a metered module that runs.
type program struct {
	t           *testing.T
	mod         api.Module
	metered     *meter.Metered
	fuel, stack api.MutableGlobal
}

// validate has the engine check a module.
func validate(t testing.TB, wasm []byte) error {
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx,
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features).WithMemoryLimitPages(256))
	defer func() {
		if err := rt.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	}()
	_, err := rt.CompileModule(ctx, wasm)
	return err
}

// metered parses, validates and rewrites a module.
func metered(t testing.TB, wasm []byte) *meter.Metered {
	t.Helper()
	m, err := meter.Parse(wasm)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	if err := validate(t, m.Sanitized()); err != nil {
		t.Fatalf("the test's module is not valid: %v", err)
	}
	out, err := m.Meter()
	if err != nil {
		t.Fatalf("meter: %v", err)
	}
	if err := validate(t, out.Wasm); err != nil {
		t.Fatalf("the metered module is not valid: %v", err)
	}
	return out
}

// run instantiates the metered module on an engine.
func run(t *testing.T, cfg wazero.RuntimeConfig, m *meter.Metered) *program {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, cfg.WithMemoryLimitPages(256))
	t.Cleanup(func() {
		if err := rt.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	mod, err := rt.InstantiateWithConfig(ctx, m.Wasm,
		wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatalf("instantiate: %v", err)
	}
	return &program{t: t, mod: mod, metered: m,
		fuel:  mod.ExportedGlobal(m.Fuel).(api.MutableGlobal),
		stack: mod.ExportedGlobal(m.Stack).(api.MutableGlobal)}
}

const plenty = 1 << 40

// call calls an export with plenty of fuel and returns its results, what it used, and its trap.
func (p *program) call(name string, args ...uint64) (results []uint64, used int64, err error) {
	return p.callWith(plenty, name, args...)
}

func (p *program) callWith(fuel int64, name string, args ...uint64) ([]uint64, int64, error) {
	p.t.Helper()
	p.fuel.Set(uint64(fuel))
	p.stack.Set(meter.StackSlots)
	results, err := p.mod.ExportedFunction(name).Call(context.Background(), args...)
	if left := p.stackLeft(); err == nil && left != meter.StackSlots {
		p.t.Errorf("%s returned with %d stack slots of %d", name, left, meter.StackSlots)
	}
	return results, fuel - p.fuelLeft(), err
}

func (p *program) fuelLeft() int64  { return int64(p.fuel.Get()) }
func (p *program) stackLeft() int64 { return int64(p.stack.Get()) }
