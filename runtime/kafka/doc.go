// Package kafka answers Kafka clients that read: an endpoint of one broker, over logs of layout
// kafka in both tiers, on which nothing can be written.
//
// It speaks ApiVersions, Metadata, ListOffsets, Fetch, OffsetForLeaderEpoch, DescribeCluster,
// DescribeConfigs and SASL PLAIN. What writes, administers or keeps groups is listed too, and
// refused with the code that a broker has for callers who may not do it: clients print that one
// plainly, and older ones choose their versions by what a broker lists. The formats are those of
// the Apache Kafka protocol guide, as kmsg has them.
//
// A connection is served by one call, ServeConn, on its caller's goroutine: one request at a time,
// in order, as brokers do. The package starts no goroutine, reads no clock and prints nothing; its
// caller lends it time and hears of every request.
//
// # Bounds
//
// What clients can make the process hold is bounded, whatever they send and however slowly they
// read (see Limits): a request's size; the memory that requests decode to, which can be thirty
// times their size; what answers hold, of all connections together; and the time for each step of a
// connection. A connection may always have 64 KiB of records under way, so that slow clients cannot
// starve others; more comes from what all of them share. A batch that is larger waits for room
// there.
//
// # What differs from a broker
//
// There is one broker, which leads every partition. It has no leader epoch of its own: Metadata and
// ListOffsets say -1, and no request is fenced; OffsetForLeaderEpoch answers from the lineage of
// the log. A partition of a topic that is not here, between others that are, is listed without a
// leader, since clients insist on dense partitions. Fetch sessions are answered as if there were
// none, which the protocol allows. Where the end of a log is a hole, an empty batch takes the
// reader over it; everything else is the bytes that the source's broker wrote.
package kafka
