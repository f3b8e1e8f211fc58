package plugin

import (
	"strings"

	"github.com/tierd/tierd/runtime/plugin/meter"
)

// Inspection is what can be said of a module without running it. It holds whatever could be read,
// also of a module that Load refuses.
type Inspection struct {
	SHA256   string             `json:"sha256"` // as the configuration pins it
	Bytes    int                `json:"bytes"`
	ABI      []string           `json:"abi"` // the versions it speaks, such as "v1"
	Exports  []InspectionMember `json:"exports"`
	Imports  []InspectionMember `json:"imports"`
	Memory   *InspectionMemory  `json:"memory"` // absent if it has none
	Tables   int                `json:"tables"`
	Funcs    int                `json:"functions"`
	Code     int                `json:"code_bytes"`
	Problems []string           `json:"problems"` // for which Load refuses it; empty if it does not
}

// InspectionMember is one import or export.
type InspectionMember struct {
	Name      string `json:"name"` // of an import: module.name
	Kind      string `json:"kind"`
	Signature string `json:"signature,omitempty"` // of functions
}

// InspectionMemory is a module's memory, in pages of 64 KiB.
type InspectionMemory struct {
	PagesMin int `json:"pages_min"`
	PagesMax int `json:"pages_max"` // what it declares, or the limit of plugins
}

// Inspect describes a module.
func Inspect(wasm []byte, limits Limits) *Inspection {
	limits = limits.withDefaults()
	in := &Inspection{SHA256: Digest(wasm), Bytes: len(wasm), ABI: []string{},
		Exports: []InspectionMember{}, Imports: []InspectionMember{}, Problems: []string{}}
	m, err := meter.Parse(wasm)
	if err != nil {
		in.Problems = append(in.Problems, err.Error())
		return in
	}
	for _, e := range m.Exports {
		in.Exports = append(in.Exports, member(e.Name, e.Kind, e.Type))
		if v, ok := strings.CutPrefix(e.Name, abiPrefix); ok {
			in.ABI = append(in.ABI, "v"+v)
		}
	}
	for _, i := range m.Imports {
		in.Imports = append(in.Imports, member(i.Module+"."+i.Name, i.Kind, i.Type))
	}
	if m.Memory != nil {
		in.Memory = &InspectionMemory{int(m.Memory.Min), limits.MemoryPages}
		if m.Memory.HasMax {
			in.Memory.PagesMax = min(limits.MemoryPages, int(m.Memory.Max))
		}
	}
	in.Tables, in.Funcs, in.Code = len(m.Tables), m.Functions(), m.CodeBytes()
	if err := checkContract(m, limits); err != nil {
		in.Problems = append(in.Problems, strings.Split(err.Error(), "\n")...)
	} else if err := validate(m.Sanitized()); err != nil {
		in.Problems = append(in.Problems, err.Error())
	}
	return in
}

func member(name string, kind meter.Kind, t meter.FuncType) InspectionMember {
	m := InspectionMember{Name: name, Kind: kind.String()}
	if kind == meter.KindFunc {
		m.Signature = t.String()
	}
	return m
}
