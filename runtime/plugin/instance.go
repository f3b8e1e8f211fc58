package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/tierd/tierd/runtime/plugin/meter"
	"github.com/tierd/tierd/runtime/tier"
)

// instance is a plugin's program with its memory. One goroutine uses it at a time. After any
// fault it is in an unknown state and must be discarded.
type instance struct {
	code        *code
	ctx         context.Context // carries the instance to the host functions
	mod         api.Module
	fuel, stack api.MutableGlobal
	alloc       api.Function // looking a function up costs more than calling it
	configure   api.Function
	selectFn    api.Function
	tables      *Tables   // that it was configured with
	args        [2]uint64 // of the call under way, and its results

	now     tier.Time
	clock   int64 // ns; what WASI's clocks show
	random  uint64
	partial []byte // a line of output that has not ended yet
	said    string // the first line of the call under way; says more than the trap of a panic
	log     *logger
}

type instanceKey struct{}

// errFuel ends a host call that the plugin has no fuel for.
var errFuel = errors.New("out of fuel")

func (i *instance) charge(units int64) {
	left := int64(i.fuel.Get()) - units
	i.fuel.Set(uint64(left))
	if left < 0 {
		panic(errFuel)
	}
}

// newInstance makes, initializes and configures an instance.
func (c *code) newInstance(tables *Tables, now tier.Time, log *logger) (*instance, *Fault) {
	i := &instance{code: c, tables: tables, now: now, clock: int64(now), log: log}
	i.ctx = context.WithValue(context.Background(), instanceKey{}, i)
	mod, err := c.runtime.InstantiateModule(i.ctx, c.compiled,
		wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, c.fault(FaultStart, "instantiate: "+firstLine(err))
	}
	i.mod = mod
	if f := i.start(); f != nil {
		i.close()
		f.starting = true
		return nil, f
	}
	return i, nil
}

// start initializes and configures the instance.
func (i *instance) start() *Fault {
	text, err := i.code.setup(i.tables)
	if err != nil {
		return i.code.fault(FaultConfigure, err.Error())
	}
	i.fuel, _ = i.mod.ExportedGlobal(i.code.names.Fuel).(api.MutableGlobal)
	i.stack, _ = i.mod.ExportedGlobal(i.code.names.Stack).(api.MutableGlobal)
	i.refuel(i.code.limits.StartFuel + i.code.limits.ConfigureFuel*int64(len(text)))
	for _, name := range []string{i.code.names.Start, exportInitialize} {
		if name == "" {
			continue
		}
		if f := i.mod.ExportedFunction(name); f != nil {
			if fault := i.call(f, 0, name); fault != nil {
				return fault
			}
		}
	}
	i.alloc = i.mod.ExportedFunction(exportAlloc)
	i.configure = i.mod.ExportedFunction(exportConfigure)
	i.selectFn = i.mod.ExportedFunction(exportSelect)
	pointer, in, fault := i.allocate(len(text))
	if fault != nil {
		return fault
	}
	copy(in, text)
	i.args = [2]uint64{uint64(pointer), uint64(len(text))}
	if fault := i.call(i.configure, 2, exportConfigure); fault != nil {
		return fault
	}
	if status := int32(i.args[0]); status != 0 {
		return i.code.fault(FaultConfigure, i.withSaid(fmt.Sprintf("it answered %d", status)))
	}
	return nil
}

// setup is the text that tierd_configure gets.
func (c *code) setup(tables *Tables) ([]byte, error) {
	config := c.config
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	text, err := json.Marshal(struct {
		ABI    int             `json:"abi"`
		Plugin string          `json:"plugin"`
		Node   string          `json:"node"`
		Config json.RawMessage `json:"config"`
		Tables json.RawMessage `json:"tables"`
	}{ABIVersion, c.name, c.node, config, tables.text()})
	if err != nil {
		return nil, fmt.Errorf("the configuration is not JSON: %w", err)
	}
	return text, nil
}

// ask runs one batch of n segments. The answer, scores and then actions, aliases the plugin's
// memory and holds until the next call.
func (i *instance) ask(b *Batch, n int) (scores, actions []byte, fault *Fault) {
	i.now, i.clock, i.said = b.Now, max(i.clock, int64(b.Now)), ""
	i.refuel(i.code.batchFuel(n))
	pointer, in, fault := i.allocate(inputBytes(n))
	if fault != nil {
		return nil, nil, fault
	}
	b.encode(in, n)
	i.args = [2]uint64{uint64(pointer), uint64(n)}
	if fault := i.call(i.selectFn, 2, exportSelect); fault != nil {
		return nil, nil, fault
	}
	at, size := uint32(i.args[0]>>32), uint32(i.args[0])
	if int64(size) != int64(resultBytes*n) {
		return nil, nil, i.code.fault(FaultOutput, fmt.Sprintf(
			"its answer has %d bytes for %d segments, want %d", size, n, resultBytes*n))
	}
	out, ok := i.mod.Memory().Read(at, size)
	if !ok {
		return nil, nil, i.code.fault(FaultOutput, fmt.Sprintf(
			"its answer of %d bytes at %#x lies outside of its memory of %d bytes",
			size, at, i.mod.Memory().Size()))
	}
	for k, a := range out[8*n:] {
		if Action(a) > ActionKeep {
			return nil, nil, i.code.fault(FaultAction, fmt.Sprintf(
				"the action %d of row %d is none of 0 (none), 1 (hold), 2 (keep)", a, k))
		}
	}
	return out[:8*n], out[8*n:], nil
}

// allocate has the plugin give n bytes of its memory, aligned to 8.
func (i *instance) allocate(n int) (pointer uint32, view []byte, fault *Fault) {
	i.args[0] = uint64(n)
	if fault := i.call(i.alloc, 1, exportAlloc); fault != nil {
		return 0, nil, fault
	}
	pointer = uint32(i.args[0])
	view, ok := i.mod.Memory().Read(pointer, uint32(n))
	if !ok || pointer%8 != 0 || pointer == 0 {
		return 0, nil, i.code.fault(FaultMemory, fmt.Sprintf(
			"%s(%d) gave %#x: want an address that is not 0, a multiple of 8, and has %d bytes "+
				"within its memory of %d", exportAlloc, n, pointer, n, i.mod.Memory().Size()))
	}
	return pointer, view, nil
}

// batchFuel is what a batch of n segments may use.
func (c *code) batchFuel(n int) int64 { return c.limits.BatchFuel + c.limits.SegmentFuel*int64(n) }

func (i *instance) refuel(units int64) {
	i.fuel.Set(uint64(units))
	i.stack.Set(meter.StackSlots)
}

// call calls f with the first params of i.args, which take its result.
func (i *instance) call(f api.Function, params int, name string) *Fault {
	err := f.CallWithStack(i.ctx, i.args[:max(params, 1)])
	if len(i.partial) > 0 {
		i.output([]byte{'\n'}) // a line that the plugin did not end
	}
	if err == nil {
		return nil
	}
	var exited *exitError
	switch {
	case int64(i.stack.Get()) < 0:
		return i.code.fault(FaultStack, "it recursed too deep in "+where(err, name))
	case int64(i.fuel.Get()) < 0:
		return i.code.fault(FaultFuel, "it used up its fuel in "+where(err, name))
	case errors.As(err, &exited):
		return i.code.fault(FaultTrap, i.withSaid(exited.Error()))
	default:
		return i.code.fault(FaultTrap, i.withSaid(firstLine(err)+" in "+where(err, name)))
	}
}

func (i *instance) withSaid(text string) string {
	if i.said == "" {
		return text
	}
	return text + "; it logged: " + i.said
}

func (i *instance) close() {
	// Closing gives memory back and cannot fail for a module without files.
	_ = i.mod.Close(i.ctx)
}

func (c *code) fault(kind FaultKind, text string) *Fault {
	return &Fault{Plugin: c.name, Kind: kind, Text: text}
}

// firstLine is the error without the engine's stack trace.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line = strings.TrimSuffix(line, " (recovered by wazero)")
	return strings.TrimPrefix(line, "wasm error: ")
}

// where names the innermost functions of the engine's stack trace, and the export that was called.
func where(err error, export string) string {
	_, trace, _ := strings.Cut(err.Error(), "wasm stack trace:\n")
	var names []string
	for line := range strings.Lines(trace) {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "."), "(")
		if number, ok := strings.CutPrefix(name, "$"); ok {
			name = "function " + number
		}
		if name != "" && name != export && len(names) < 3 {
			names = append(names, name)
		}
	}
	return strings.Join(append(names, export), " < ")
}
