package sim

import (
	"github.com/tierd/tierd/runtime/plugin"
)

// wildNames are the plugins of the built-in project: none, or one of those that every host meets
// sooner or later.
var wildNames = []string{"none", "one traps", "one spins", "one answers garbage",
	"one keeps everything"}

// wildWeights say how often chance takes each: one that traps while something may go is rare.
var wildWeights = []int{1, 3, 1, 1, 1}

// wildBodies are the instructions of their tierd_select.
var wildBodies = [][]byte{
	{0x00},                               // unreachable
	{0x03, 0x40, 0x0c, 0x00, 0x0b, 0x00}, // loop; br 0; end; unreachable
	{0x42, 0x7f},                         // i64.const -1: an answer that lies nowhere
	{
		0x41, 0x80, 0x80, 0x04, 0x41, 2, // i32.const 65536; i32.const 2: an answer that says keep
		0x20, 1, 0x41, 9, 0x6c, 0xfc, 0x0b, 0, // local.get 1; i32.const 9; i32.mul; memory.fill
		0x41, 0x80, 0x80, 0x04, 0xad, 0x42, 32, 0x86, // i64.shl(65536, 32): where it lies
		0x20, 1, 0x41, 9, 0x6c, 0xad, 0x84, // i64.or(9 * n): how long it is
	},
}

// wildFuel is what such a plugin may burn for a batch; it is soon over.
const wildFuel = 100_000

// wildSets loads them, in the order of wildNames. The first is nil.
func wildSets() ([]*plugin.Set, error) {
	out := []*plugin.Set{nil}
	for _, body := range wildBodies {
		wasm := wildModule(body)
		set, err := plugin.Load([]plugin.Spec{{Name: "wild", Wasm: wasm, SHA256: plugin.Digest(wasm)}},
			plugin.Options{Limits: plugin.Limits{MemoryPages: 4, BatchFuel: wildFuel}})
		if err != nil {
			return nil, err
		}
		out = append(out, set)
	}
	return out, nil
}

// wildModule is a module of the plugins' ABI, by the binary format of WebAssembly 1.0 (section 5 of
// its specification). Its tierd_alloc always gives the same place.
func wildModule(body []byte) []byte {
	section := func(id byte, parts ...[]byte) []byte {
		var all []byte
		for _, p := range parts {
			all = append(all, p...)
		}
		return append([]byte{id, byte(len(all))}, all...) // none has 128 bytes
	}
	export := func(name string, kind, index byte) []byte {
		return append(append([]byte{byte(len(name))}, name...), kind, index)
	}
	code := func(body ...byte) []byte { // no locals, and an end
		return append(append([]byte{byte(len(body) + 2), 0}, body...), 0x0b)
	}
	const i32, i64 = 0x7f, 0x7e
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range [][]byte{
		section(1, []byte{4, 0x60, 0, 0, 0x60, 1, i32, 1, i32, 0x60, 2, i32, i32, 1, i32,
			0x60, 2, i32, i32, 1, i64}),
		section(3, []byte{4, 0, 1, 2, 3}),
		section(5, []byte{1, 0, 2}), // two pages
		section(7, []byte{5}, export("memory", 2, 0), export("tierd_abi_v1", 0, 0),
			export("tierd_alloc", 0, 1), export("tierd_configure", 0, 2), export("tierd_select", 0, 3)),
		section(10, []byte{4}, code(), code(0x41, 0x80, 0x20), code(0x41, 0), code(body...)),
	} {
		out = append(out, s...)
	}
	return out
}
