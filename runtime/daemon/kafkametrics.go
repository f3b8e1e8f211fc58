package daemon

import "github.com/prometheus/client_golang/prometheus"

// kafkaMetrics are those of the Kafka endpoint.
type kafkaMetrics struct {
	connections                prometheus.Gauge
	refused, ended             prometheus.Counter
	requests                   *prometheus.CounterVec
	responseBytes, recordBytes prometheus.Counter
}

func newKafkaMetrics(r prometheus.Registerer) kafkaMetrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "tierd_kafka_" + name, Help: help})
		r.MustRegister(c)
		return c
	}
	m := kafkaMetrics{
		connections: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierd_kafka_connections",
			Help: "Connections to the Kafka endpoint."}),
		refused: counter("connections_refused_total",
			"Connections turned away because too many were open."),
		ended: counter("connections_cut_total",
			"Connections ended for what their client sent, or how slowly."),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tierd_kafka_requests_total",
			Help: "Requests answered, by kind and by Kafka's name of the first error; empty is none."},
			[]string{"api", "error"}),
		responseBytes: counter("response_bytes_total", "Bytes of the answers."),
		recordBytes:   counter("record_bytes_total", "Bytes of record batches in the answers."),
	}
	r.MustRegister(m.connections, m.requests)
	return m
}
