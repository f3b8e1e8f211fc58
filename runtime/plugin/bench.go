package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// BenchOptions says what to measure.
type BenchOptions struct {
	Segments int                  // of a batch; 10,000
	Rounds   int                  // batches to time; 20
	Config   json.RawMessage      // for tierd_configure
	Clock    func() time.Duration // monotonic; required
	CacheDir string               // empty leaves the cache out
	Limits   Limits
}

// BenchReport is what a plugin costs.
type BenchReport struct {
	Segments       int           `json:"segments"`
	Rounds         int           `json:"rounds"`
	Load           time.Duration `json:"load_ns"`             // first load, which compiles
	CachedLoad     time.Duration `json:"cached_load_ns"`      // second load; 0 without a cache
	FirstBatch     time.Duration `json:"first_batch_ns"`      // with making an instance
	Batch          time.Duration `json:"batch_ns"`            // the fastest round
	PerSegment     float64       `json:"segment_ns"`          // of the fastest round
	FuelPerSegment float64       `json:"fuel_per_segment"`    // of the last round
	FuelShare      float64       `json:"fuel_share"`          // of what a batch may use
	MemoryBytes    int           `json:"memory_bytes"`        // of the instance after all rounds
	CallBytes      int           `json:"bytes_to_the_plugin"` // of one batch
}

// Bench measures a plugin with a made-up batch: logs of ten segments in eight tables.
func Bench(name string, wasm []byte, o BenchOptions) (report *BenchReport, err error) {
	set(&o.Segments, 10_000)
	set(&o.Rounds, 20)
	b, err := benchBatch(o.Segments)
	if err != nil {
		return nil, err
	}
	n := b.Len()
	report = &BenchReport{Segments: n, Rounds: o.Rounds, CallBytes: inputBytes(n)}
	spec := Spec{Name: name, Wasm: wasm, SHA256: Digest(wasm), Config: o.Config}
	options := Options{Node: "bench", Tables: b.Tables, Limits: o.Limits, CacheDir: o.CacheDir}
	loads := []*time.Duration{&report.Load}
	if o.CacheDir != "" {
		loads = append(loads, &report.CachedLoad)
	}
	var s *Set
	for _, took := range loads {
		if s != nil {
			if err := s.Close(); err != nil {
				return nil, err
			}
		}
		began := o.Clock()
		if s, err = Load([]Spec{spec}, options); err != nil {
			if load := (*LoadError)(nil); errors.As(err, &load) {
				err = load.Err // there is one plugin, which the caller names
			}
			return nil, err
		}
		*took = o.Clock() - began
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return report, report.rounds(s, b, n, o)
}

// rounds times batches in one instance.
func (report *BenchReport) rounds(s *Set, b *Batch, n int, o BenchOptions) error {
	w := s.NewWorker()
	defer w.Close()
	var r Result
	for k := range o.Rounds + 1 {
		began := o.Clock()
		w.Select(b, &r)
		took := o.Clock() - began
		if len(r.Faults) > 0 {
			return fmt.Errorf("batch %d: %w", k+1, &r.Faults[0])
		}
		if k == 0 {
			report.FirstBatch = took
		} else if report.Batch == 0 || took < report.Batch {
			report.Batch = took
		}
	}
	inst, code := w.slots[0].inst, s.codes[0]
	used := code.batchFuel(n) - int64(inst.fuel.Get())
	report.PerSegment = float64(report.Batch.Nanoseconds()) / float64(n)
	report.FuelPerSegment = float64(used) / float64(n)
	report.FuelShare = float64(used) / float64(code.batchFuel(n))
	report.MemoryBytes = int(inst.mod.Memory().Size())
	return nil
}

// benchBatch makes a batch of about n segments, always the same.
func benchBatch(n int) (*Batch, error) {
	const tableCount, perLog = 8, 10
	list := make([]Table, tableCount)
	for i := range list {
		list[i] = Table{Name: fmt.Sprintf("table-%d", i), Labels: map[string]string{"bench": "yes"}}
	}
	tables, err := NewTables(list)
	b := &Batch{Now: tier.TimeOf(defaultNow), Tables: tables}
	for i := range max(1, n/perLog) {
		l := Log{ID: tier.LogID{Table: list[i%tableCount].Name, Name: fmt.Sprint(i)},
			Table: i % tableCount, State: tier.Enabled, LocalBytes: perLog << 30,
			DiskUsedBytes: 800 << 30, DiskFreeBytes: 200 << 30}
		for k := range perLog {
			age := time.Duration((perLog-k)*20+i%17) * time.Minute
			l.Segments = append(l.Segments, Segment{
				Range: tier.Range{Base: tier.Offset(1000 * k), Next: tier.Offset(1000 * (k + 1))},
				Bytes: int64(1<<20 + 4096*(i*perLog+k)%(1<<30)), Age: age, MaxTime: b.Now.Add(-age),
				Local: true, Remote: k < perLog/2, Copied: k < perLog/2, Verified: k < perLog/2})
		}
		b.Logs = append(b.Logs, l)
	}
	return b, err
}
