// Command keeplast is a plugin that keeps the newest segments of every log on local disk, however
// old they are, for consumers that read the last segments again and again.
//
//	plugins:
//	  - name: keeplast
//	    path: keeplast.wasm
//	    sha256: "..."
//	    config: {keep: 1, tables: {orders: 3}}
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tierd/tierd/runtime/plugin/sdk/go/tierd"
)

func init() { tierd.Register(&keepLast{}) }

func main() {}

type keepLast struct {
	keep    []int // by table
	general int   // for tables that are not known
}

// Configure implements tierd.Plugin.
func (k *keepLast) Configure(s *tierd.Setup) error {
	var config struct {
		Keep   int            `json:"keep"`
		Tables map[string]int `json:"tables"`
	}
	d := json.NewDecoder(bytes.NewReader(s.Config))
	d.DisallowUnknownFields() // a misspelt key would keep nothing
	if err := d.Decode(&config); err != nil {
		return fmt.Errorf("config: %w; want {keep: NUMBER, tables: {NAME: NUMBER}}", err)
	}
	if config.Keep < 0 {
		return fmt.Errorf("keep is %d; want how many segments to keep", config.Keep)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Tables)) {
		if n := config.Tables[name]; n < 0 {
			return fmt.Errorf("tables: %s is %d; want how many segments to keep", name, n)
		}
	}
	k.general = config.Keep
	for _, t := range s.Tables {
		n, ok := config.Tables[t.Name]
		if !ok {
			n = config.Keep
		}
		k.keep = append(k.keep, n)
	}
	return nil
}

// Select implements tierd.Plugin. It walks each log from its newest segment back.
func (k *keepLast) Select(b *tierd.Batch, out *tierd.Choices) {
	seen, current := 0, int64(-1)
	for i := b.Len() - 1; i >= 0; i-- {
		if b.Log[i] != current {
			seen, current = 0, b.Log[i]
		}
		if b.Tiers[i]&tierd.Local == 0 {
			continue
		}
		if seen < k.of(b.Table[i]) {
			out.Action[i] = tierd.Keep
		}
		seen++
	}
}

func (k *keepLast) of(table int64) int {
	if table < 0 || int(table) >= len(k.keep) {
		return k.general
	}
	return k.keep[table]
}
