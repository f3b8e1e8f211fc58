package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/plugin/meter"
)

// The names of the ABI.
const (
	exportABI        = "tierd_abi_v1"
	exportAlloc      = "tierd_alloc"
	exportConfigure  = "tierd_configure"
	exportSelect     = "tierd_select"
	exportMemory     = "memory"
	exportInitialize = "_initialize" // of WASI reactors; optional
	exportCommand    = "_start"      // of WASI commands, which end when they have run
	moduleTierd      = "tierd"
	importLog        = "log"
	moduleWASI       = "wasi_snapshot_preview1"
	abiPrefix        = "tierd_abi_v"
)

// requiredExports lists the functions that a plugin must export, with their signatures.
var requiredExports = []struct{ name, signature string }{
	{exportABI, "() -> ()"},
	{exportAlloc, "(i32) -> (i32)"},
	{exportConfigure, "(i32, i32) -> (i32)"},
	{exportSelect, "(i32, i32) -> (i64)"},
}

// checkContract reports everything for which a module is no plugin of this ABI, joined.
func checkContract(m *meter.Module, limits Limits) error {
	var errs []error
	object := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	exports := map[string]meter.Export{}
	for _, e := range m.Exports {
		exports[e.Name] = e
	}
	if err := checkVersion(m); err != nil {
		errs = append(errs, err)
	}
	for _, want := range requiredExports[1:] {
		if e, ok := exports[want.name]; !ok || e.Kind != meter.KindFunc {
			object("it does not export the function %s %s", want.name, want.signature)
		}
	}
	for _, want := range requiredExports {
		if e, ok := exports[want.name]; ok && e.Type.String() != want.signature {
			object("its %s has the signature %s, want %s", want.name, e.Type, want.signature)
		}
	}
	if e, ok := exports[exportInitialize]; ok && e.Type.String() != "() -> ()" {
		object("its %s has the signature %s, want () -> ()", exportInitialize, e.Type)
	}
	if _, ok := exports[exportCommand]; ok {
		object("it is a command, which ends when it has run; " +
			"build a library (Go: -buildmode=c-shared; C: -Wl,--no-entry; Rust: crate-type cdylib)")
	}
	if e, ok := exports[exportMemory]; !ok || e.Kind != meter.KindMemory {
		object("it does not export its memory as %q", exportMemory)
	} else if m.Memory != nil && int64(m.Memory.Min) > int64(limits.MemoryPages) {
		object("it begins with %d pages of memory (%d MiB), the limit is %d (%d MiB)",
			m.Memory.Min, m.Memory.Min/16, limits.MemoryPages, limits.MemoryPages/16)
	}
	for _, im := range m.Imports {
		if err := checkImport(im); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// checkVersion looks for the marker of an ABI that this package speaks.
func checkVersion(m *meter.Module) error {
	var others []string
	for _, e := range m.Exports {
		switch {
		case e.Name == exportABI && e.Kind == meter.KindFunc:
			return nil
		case strings.HasPrefix(e.Name, abiPrefix):
			others = append(others, "v"+strings.TrimPrefix(e.Name, abiPrefix))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		return fmt.Errorf("it speaks ABI %s, this tierd speaks v%d",
			strings.Join(others, ", "), ABIVersion)
	}
	return fmt.Errorf("it does not export the function %s: it is no tierd plugin", exportABI)
}

// checkImport refuses what the host does not give.
func checkImport(im meter.Import) error {
	full := im.Module + "." + im.Name
	if im.Kind != meter.KindFunc {
		return fmt.Errorf("it imports the %s %s; plugins may import functions alone", im.Kind, full)
	}
	f, ok := hostFunctions[full]
	if !ok {
		return fmt.Errorf("it imports %s, which plugins are not given; "+
			"there are %s.%s and the functions of %s", full, moduleTierd, importLog, moduleWASI)
	}
	if got := im.Type.String(); got != f.signature() {
		return fmt.Errorf("it imports %s as %s, want %s", full, got, f.signature())
	}
	return nil
}
