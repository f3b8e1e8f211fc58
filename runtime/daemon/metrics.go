package daemon

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierd/tierd/runtime/engine"
	"github.com/tierd/tierd/runtime/tier"
)

// metrics are all of tierd's own. Their names stand here and in docs/metrics.md; labels go by table
// at most. Gauges are read from the engine at each scrape, so that a lag is shown also while
// everything fails.
type metrics struct {
	copied, copiedBytes   *prometheus.CounterVec
	deleted, deletedBytes *prometheus.CounterVec
	decisions             *prometheus.CounterVec
	effects               *prometheus.HistogramVec
	failures              *prometheus.CounterVec
	inFlight              *prometheus.GaugeVec
	lastSuccess           *prometheus.GaugeVec
	stalled               *prometheus.GaugeVec
	sourceTrouble         *prometheus.GaugeVec
	generation            prometheus.Gauge
	reloaded              prometheus.Gauge
	policies              *prometheus.GaugeVec
	reloadOK              prometheus.Gauge
	reserveHeld           prometheus.Gauge
	factsUnknown          prometheus.Gauge
	scrubbed              *prometheus.CounterVec
	scrubbedBytes         prometheus.Counter
	manifests             *prometheus.CounterVec
	scrubOpen             *prometheus.GaugeVec
	plugins               pluginMetrics
	kafka                 kafkaMetrics
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierd_" + name, Help: help}, labels)
		r.MustRegister(c)
		return c
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierd_" + name, Help: help}, labels)
		r.MustRegister(g)
		return g
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierd_" + name, Help: help})
		r.MustRegister(g)
		return g
	}
	m := &metrics{
		copied:      counter("copied_segments_total", "Segments copied to the store.", "table"),
		copiedBytes: counter("copied_bytes_total", "Bytes of the segments copied.", "table"),
		deleted: counter("deleted_segments_total", "Segments deleted, and objects of orphans.",
			"table", "action"),
		deletedBytes: counter("deleted_bytes_total", "Bytes of the segments deleted.", "table", "action"),
		decisions: counter("gate_decisions_total",
			"Answers of the gate: to a deletion, by verdict, code and deciding rule.",
			"action", "verdict", "code", "rule"),
		failures: counter("effect_failures_total", "Effects that did not do what they should.",
			"effect", "code"),
		inFlight: gauges("effects_in_flight", "Effects under way.", "effect"),
		lastSuccess: gauges("task_last_success_timestamp_seconds",
			"When a task last succeeded, in seconds since the Unix epoch.", "task"),
		stalled: gauges("task_stalled",
			"1 while a task has failed, or not come back, for ten minutes without a success; policies "+
				"while an evaluation does not end.", "task"),
		sourceTrouble: gauges("source_trouble",
			"1 while a source is vanished, empty or unreadable and nothing of it is decided.", "source"),
		generation: gauge("config_generation", "Number of the generation in force."),
		reloaded:   gauge("config_load_timestamp_seconds", "When the generation in force was loaded."),
		policies: gauges("policies_info",
			"1, by the digest of the policies and data in force.", "digest"),
		reloadOK:    gauge("config_last_reload_successful", "1 if the last reload took effect."),
		reserveHeld: gauge("reserve_held", "1 while the reserve for a full disk is held."),
		factsUnknown: gauge("facts_unknown",
			"Facts of the configuration that are not known now; what depends on them is kept."),
		kafka: newKafkaMetrics(r),
	}
	m.scrubbed = counter("scrubbed_segments_total", "Copies that were read back from the store.",
		"result")
	m.scrubbedBytes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tierd_scrubbed_bytes_total", Help: "Bytes that were read back from the store."})
	r.MustRegister(m.scrubbedBytes)
	m.manifests = counter("scrubbed_manifest_objects_total",
		"Objects of manifests that were looked at in the store.", "result")
	m.scrubOpen = gauges("scrub_open",
		"What a scrub left open: the store does not give it, or it is not what the ledger says.", "what")
	m.effects = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tierd_effect_seconds",
		Help: "How long effects took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)},
		[]string{"effect"})
	r.MustRegister(m.effects)
	m.plugins = pluginMetrics{
		batches:  counter("plugin_batches_total", "Batches that a plugin answered.", "plugin"),
		segments: counter("plugin_segments_total", "Segments of the batches that it answered.", "plugin"),
		fuel:     counter("plugin_fuel_total", "Fuel that it used for them.", "plugin"),
		failures: counter("plugin_failures_total",
			"Batches that it gave no answer to though it was asked, by cause.", "plugin", "kind"),
		resting: gauges("plugin_resting", "1 while it is not asked, because it failed.", "plugin"),
		success: gauges("plugin_last_success_timestamp_seconds",
			"When it last answered, in seconds since the Unix epoch.", "plugin"),
	}
	return m
}

func (m *metrics) begun(f engine.Effect) {
	m.inFlight.WithLabelValues(effectKind(f)).Inc()
}

func (m *metrics) ended(f engine.Effect, r engine.Result, took time.Duration) {
	kind := effectKind(f)
	m.inFlight.WithLabelValues(kind).Dec()
	m.effects.WithLabelValues(kind).Observe(took.Seconds())
	if failed, ok := r.(engine.Failed); ok {
		m.failures.WithLabelValues(kind, string(failed.Reason.Code)).Inc()
		return
	}
	m.lastSuccess.WithLabelValues(kind).SetToCurrentTime()
	switch r := r.(type) {
	case engine.Copied:
		if f, ok := f.(engine.Copy); ok {
			m.copied.WithLabelValues(f.Log.Table).Inc()
			m.copiedBytes.WithLabelValues(f.Log.Table).Add(float64(r.Remote.Bytes))
		}
	case engine.Deleted:
		m.went(f.(engine.Delete), r)
	default:
		m.answered(f, r)
	}
}

// answered counts the answers about copies but for those by which something went: a copy is asked
// about before it leaves its log, and again before its objects go.
func (m *metrics) answered(f engine.Effect, r engine.Result) {
	switch r := r.(type) {
	case engine.Moved:
		if f, ok := f.(engine.Expire); ok {
			for _, c := range f.Segments {
				if c.Next <= r.Start {
					m.allowed(tier.DeleteRemote, 1)
				}
			}
			if r.Kept != nil {
				m.kept(tier.DeleteRemote, r.Kept.Reasons)
			}
		}
	case engine.StaysAll:
		action := tier.DeleteRemote
		if _, ok := f.(engine.Clear); ok {
			action = tier.DeleteOrphan
		}
		m.kept(action, r.Kept.Reasons)
	case engine.Removed:
		for _, k := range r.Kept {
			m.kept(f.(engine.Remove).Action, k.Reasons)
		}
	}
}

// removed counts what went from the store.
func (m *metrics) removed(d *tier.Deletion) {
	m.deleted.WithLabelValues(d.Log.Table, string(d.Action)).Inc()
	m.deletedBytes.WithLabelValues(d.Log.Table, string(d.Action)).Add(float64(d.Bytes))
	m.allowed(d.Action, 1)
}

// went counts what a deletion came to.
func (m *metrics) went(f engine.Delete, r engine.Deleted) {
	for _, s := range r.Gone {
		m.deleted.WithLabelValues(f.Log.Table, string(f.Action)).Inc()
		m.deletedBytes.WithLabelValues(f.Log.Table, string(f.Action)).Add(float64(s.Bytes))
	}
	m.decided(f.Action, r)
}

func (m *metrics) decided(a tier.Action, r engine.Deleted) {
	if n := len(r.Gone); n > 0 {
		m.allowed(a, n)
	}
	if r.Kept != nil {
		m.kept(a, r.Kept.Reasons)
	}
}

func (m *metrics) allowed(a tier.Action, n int) {
	m.decisions.WithLabelValues(string(a), "delete", string(tier.CodeAllowed), "").Add(float64(n))
}

func (m *metrics) kept(a tier.Action, why []tier.Reason) {
	for _, w := range why {
		m.decisions.WithLabelValues(string(a), "keep", string(w.Code), w.Rule).Inc()
	}
}

// effectKind names the kind of work that an effect is: the label of its metrics.
func effectKind(f engine.Effect) string {
	switch f.(type) {
	case engine.Open:
		return "open"
	case engine.Copy:
		return "copy"
	case engine.Resolve:
		return "resolve"
	case engine.Compare:
		return "compare"
	case engine.Delete:
		return "delete"
	case engine.RecordHole:
		return "record_hole"
	case engine.Publish:
		return "publish"
	case engine.Checkpoint:
		return "checkpoint"
	case engine.ChangeTier:
		return "change_tier"
	case engine.Govern:
		return "govern"
	case engine.OpenEpoch:
		return "open_epoch"
	case engine.MoveStart:
		return "move_start"
	case engine.Expire:
		return "expire"
	case engine.Remove:
		return "remove"
	case engine.Clear:
		return "clear"
	case engine.Sweep:
		return "sweep"
	case engine.Pause:
		return "pause"
	case engine.Select:
		return "select"
	default:
		panic(fmt.Sprintf("daemon: the effect %T has no name", f))
	}
}

// tableMetrics turns the engine's tallies into gauges.
type tableMetrics struct {
	read func() ([]engine.Tally, tier.Time)
	desc []tableGauge
}

type tableGauge struct {
	desc  *prometheus.Desc
	value func(t *engine.Tally, now tier.Time) float64
}

func newTableMetrics(read func() ([]engine.Tally, tier.Time)) *tableMetrics {
	m := &tableMetrics{read: read}
	add := func(name, help string, value func(t *engine.Tally, now tier.Time) float64) {
		m.desc = append(m.desc, tableGauge{value: value,
			desc: prometheus.NewDesc("tierd_"+name, help, []string{"table"}, nil)})
	}
	plain := func(name, help string, value func(t *engine.Tally) int64) {
		add(name, help, func(t *engine.Tally, _ tier.Time) float64 { return float64(value(t)) })
	}
	plain("logs", "Logs of the table.", func(t *engine.Tally) int64 { return t.Logs })
	plain("blocked_logs", "Logs of which nothing is decided; status says why.",
		func(t *engine.Tally) int64 { return t.Blocked })
	plain("local_segments", "Segments on local disk.",
		func(t *engine.Tally) int64 { return t.Local.Segments })
	plain("local_bytes", "Bytes on local disk.", func(t *engine.Tally) int64 { return t.Local.Bytes })
	plain("remote_segments", "Segments in the store.",
		func(t *engine.Tally) int64 { return t.Remote.Segments })
	plain("remote_bytes", "Bytes in the store, each segment counted once.",
		func(t *engine.Tally) int64 { return t.Remote.Bytes })
	plain("copy_lag_segments", "Closed segments that are not copied yet.",
		func(t *engine.Tally) int64 { return t.Uncopied.Segments })
	plain("copy_lag_bytes", "Bytes of closed segments that are not copied yet.",
		func(t *engine.Tally) int64 { return t.Uncopied.Bytes })
	add("copy_lag_seconds", "Age of the oldest closed segment that is not copied yet.",
		func(t *engine.Tally, now tier.Time) float64 { return secondsSince(t.OldestLag, now) })
	plain("delete_lag_segments", "Copied local segments that are over their limits and still there.",
		func(t *engine.Tally) int64 { return t.Overdue.Segments })
	plain("delete_lag_bytes", "Bytes of copied local segments over their limits.",
		func(t *engine.Tally) int64 { return t.Overdue.Bytes })
	add("delete_lag_seconds", "For how long the oldest of them has been over its limit.",
		func(t *engine.Tally, now tier.Time) float64 { return secondsSince(t.OldestDue, now) })
	plain("plugin_held_segments", "Segments that plugins hold back from copying.",
		func(t *engine.Tally) int64 { return t.Held.Segments })
	plain("plugin_held_bytes", "Bytes that plugins hold back from copying.",
		func(t *engine.Tally) int64 { return t.Held.Bytes })
	plain("plugin_kept_segments", "Segments that plugins keep on local disk.",
		func(t *engine.Tally) int64 { return t.Kept.Segments })
	plain("plugin_kept_bytes", "Bytes that plugins keep on local disk.",
		func(t *engine.Tally) int64 { return t.Kept.Bytes })
	plain("quarantined_segments", "Damaged segments, each blocking its log.",
		func(t *engine.Tally) int64 { return t.Quarantined })
	plain("lost_segments", "Copies that the store lost or altered, with no better one.",
		func(t *engine.Tally) int64 { return t.Lost })
	plain("holes", "Ranges of offsets that are in neither tier.",
		func(t *engine.Tally) int64 { return t.Holes })
	plain("hole_offsets", "Offsets that are in neither tier.",
		func(t *engine.Tally) int64 { return t.HoleOffsets })
	plain("tier_epoch", "The table's tier epoch.",
		func(t *engine.Tally) int64 { return int64(t.Epoch) })
	add("paused", "1 while deletions of the table are paused by its brake.",
		func(t *engine.Tally, _ tier.Time) float64 {
			if t.Paused {
				return 1
			}
			return 0
		})
	return m
}

// secondsSince is never negative, whatever the clock does.
func secondsSince(t, now tier.Time) float64 {
	if t == 0 || now < t {
		return 0
	}
	return now.Sub(t).Seconds()
}

// Describe implements prometheus.Collector.
func (m *tableMetrics) Describe(out chan<- *prometheus.Desc) {
	for _, g := range m.desc {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *tableMetrics) Collect(out chan<- prometheus.Metric) {
	tallies, now := m.read()
	for i := range tallies {
		for _, g := range m.desc {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue,
				g.value(&tallies[i], now), tallies[i].Table)
		}
	}
}
