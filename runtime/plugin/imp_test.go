package plugin

import (
	"path/filepath"
	"testing"
)

// TestImp: the plugin of testdata/imp.c, with which others test how they run plugins, does what it
// is told to.
func TestImp(t *testing.T) {
	t.Parallel()
	wasm := readModule(t, filepath.Join(modules, "c-imp.wasm"))
	for mood, want := range map[string]FaultKind{
		"none": "", "score": "", "hold": "", "keep": "", "any": "", "trap": FaultTrap,
		"spin": FaultFuel, "hoard": FaultTrap, "chatter": FaultFuel, "recurse": FaultStack,
		"garbage": FaultAction,
	} {
		p := spec("imp", wasm)
		p.Config = []byte(`{"moods": ["` + mood + `"], "seed": 1}`)
		s, err := Load([]Spec{p}, Options{Limits: Limits{MemoryPages: 64, BatchFuel: 1e6}})
		if err != nil {
			t.Fatal(err)
		}
		w := s.NewWorker()
		r := ask(w, batch(3, 3))
		got := FaultKind("")
		if len(r.Faults) > 0 {
			got = r.Faults[0].Kind
		}
		if got != want {
			t.Errorf("%s: fault %q, want %q: %v", mood, got, want, r.Faults)
		}
		held, kept := r.holds[5] != 0, r.keeps[5] != 0
		if held != (mood == "hold") && mood != "any" || kept != (mood == "keep") && mood != "any" {
			t.Errorf("%s: held %v, kept %v", mood, held, kept)
		}
		w.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
