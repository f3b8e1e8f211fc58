// Command hottest is a plugin that has the hottest tables copied first.
//
// The heat of a table is how many bytes of its segments hold records of the last hour. Within a
// table, and among tables of the same heat, the built-in order stands.
//
//	plugins:
//	  - name: hottest
//	    path: hottest.wasm
//	    sha256: "..."
//	    config: {window_seconds: 3600}
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/tierd/tierd/runtime/plugin/sdk/go/tierd"
)

func init() { tierd.Register(&hottest{}) }

func main() {}

type hottest struct {
	window int64   // ns
	heat   []int64 // bytes by table; the last one is of tables that are not known
}

// Configure implements tierd.Plugin.
func (h *hottest) Configure(s *tierd.Setup) error {
	config := struct {
		WindowSeconds int64 `json:"window_seconds"`
	}{3600}
	d := json.NewDecoder(bytes.NewReader(s.Config))
	d.DisallowUnknownFields() // a misspelt key would leave the default in force
	if err := d.Decode(&config); err != nil {
		return fmt.Errorf("config: %w; want {window_seconds: NUMBER}", err)
	}
	if n := config.WindowSeconds; n <= 0 || n > math.MaxInt64/int64(time.Second) {
		return fmt.Errorf("window_seconds is %d; want how far back it looks, at least 1", n)
	}
	h.window = config.WindowSeconds * int64(time.Second)
	h.heat = make([]int64, len(s.Tables)+1)
	return nil
}

// Select implements tierd.Plugin.
func (h *hottest) Select(b *tierd.Batch, out *tierd.Choices) {
	clear(h.heat)
	oldest := b.Now - h.window
	for i, newest := range b.MaxTimestamp {
		if newest > oldest {
			h.heat[h.slot(b.Table[i])] += b.Bytes[i]
		}
	}
	for i, table := range b.Table {
		out.Score[i] = h.heat[h.slot(table)]
	}
}

func (h *hottest) slot(table int64) int64 {
	if table < 0 {
		return int64(len(h.heat) - 1)
	}
	return table
}
