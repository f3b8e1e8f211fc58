package daemon

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierd/tierd/runtime/read"
)

// registerReads tells what reading the archive takes, from the cache's own counts.
func registerReads(r prometheus.Registerer, stats func() read.CacheStats) {
	counter := func(name, help string, labels prometheus.Labels,
		value func(read.CacheStats) int64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tierd_" + name,
			Help: help, ConstLabels: labels}, func() float64 { return float64(value(stats())) }))
	}
	gauge := func(name, help string, labels prometheus.Labels, value func(read.CacheStats) int64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tierd_" + name,
			Help: help, ConstLabels: labels}, func() float64 { return float64(value(stats())) }))
	}
	memory, disk := prometheus.Labels{"place": "memory"}, prometheus.Labels{"place": "disk"}
	const hits, size = "read_cache_hits_total", "read_cache_bytes"
	const hitsHelp = "Chunks of objects that were read from the cache."
	const sizeHelp = "Bytes of the chunks that the cache holds."
	counter(hits, hitsHelp, memory, func(s read.CacheStats) int64 { return s.Hits })
	counter(hits, hitsHelp, disk, func(s read.CacheStats) int64 { return s.DiskHits })
	gauge(size, sizeHelp, memory, func(s read.CacheStats) int64 { return s.MemoryBytes })
	gauge(size, sizeHelp, disk, func(s read.CacheStats) int64 { return s.DiskBytes })
	counter("read_store_requests_total", "Requests to the store by readers.", nil,
		func(s read.CacheStats) int64 { return s.Fetches })
	counter("read_store_failures_total", "Requests to the store by readers that failed.", nil,
		func(s read.CacheStats) int64 { return s.FetchFailures })
	counter("read_store_bytes_total", "Bytes that readers got from the store.", nil,
		func(s read.CacheStats) int64 { return s.FetchedBytes })
	counter("read_cache_errors_total", "Files of the cache that could not be read or written.", nil,
		func(s read.CacheStats) int64 { return s.DiskErrors })
}
