// Package broker talks to the running Kafka cluster beside a source: as a client like any other,
// over the network, never through the cluster's files.
package broker
