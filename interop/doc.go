// Package interop has no code but tests: of the real tierd command beside real systems, which make
// interop fetches.
//
//	brokers  Kafka, of one node and of three: tierd beside it, killed in between, while clients read
//	         through tierd; tiering turned off and on; leader changes, an unclean election, another
//	         cluster, a topic made again; TLS and SASL; consumer groups; restored logs
//	tablets  Fluss, which its test fetches and compiles: tierd beside it, killed in between; restored
//	         buckets; a directory from which a stopped server's segments went
//	stores   S3 (versitygw), GCS (fake-gcs-server), Azure (Azurite), FILESYSTEM, and a proxy that
//	         delays, cuts, refuses and denies
//
// With the build tag measure there is also what make bench-interop measures: tierd beside rclone,
// and beside a broker's own tiered storage.
//
// It is a module of its own, so that what the servers need is no part of tierd's. Each test starts
// its systems on free ports of the loopback interface and in directories of its own, and ends them.
package interop
