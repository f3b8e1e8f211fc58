package config

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tierd/tierd/runtime/plugin"
	"github.com/tierd/tierd/runtime/plugin/meter"
)

// TestModules: a generation has the files of its plugins, and the host of plugins takes what is
// as large as may be here.
func TestModules(t *testing.T) {
	t.Parallel()
	if ModuleBytesMax != meter.ModuleBytesMax {
		t.Errorf("a module may have %d bytes here and %d there", ModuleBytesMax,
			meter.ModuleBytesMax)
	}
	m := newMachine()
	wasm := []byte("a module")
	m.files["srv/p.wasm"] = &fstest.MapFile{Data: wasm}
	text := base + "plugins: [{name: p, path: /srv/p.wasm, sha256: \"" + plugin.Digest(wasm) +
		"\", config: {b: 1, a: [x]}}]\n"
	m.files[home[1:]+"tierd.yaml"] = &fstest.MapFile{Data: []byte(text)}
	g, err := LoadGeneration(home+"tierd.yaml", m.host())
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Modules) != 1 || string(g.Modules[0]) != string(wasm) {
		t.Errorf("modules %q", g.Modules)
	}
	if got := string(g.Config.Plugins[0].Config); got != `{"a":["x"],"b":1}` {
		t.Errorf("config %s", got)
	}
	m.files["srv/p.wasm"] = &fstest.MapFile{Data: make([]byte, ModuleBytesMax+1)}
	if _, err := LoadGeneration(home+"tierd.yaml", m.host()); err == nil ||
		!strings.Contains(err.Error(), "/srv/p.wasm is larger than 32MiB") {
		t.Errorf("a file that is too large: %v", err)
	}
}
