// Package tier holds tierd's nouns: logs, offsets, segments, copies, records and reasons.
//
// It is the vocabulary that every other package speaks. It imports the standard library alone,
// reads no clock and does no IO, so that the engine, the gate and the simulator can share it.
//
// A log is one ordered sequence of offsets (a Kafka partition, a Fluss bucket, a directory of
// write-ahead files). It is kept in segments, each of which holds the offsets [base, next):
//
//	log start            copied offset         local end
//	    |                      |                   |
//	    v                      v                   v
//	----[ 0 .. 100 )[ 100 .. 220 )[ 220 .. 300 )[ 300 ..
//	    remote only  both tiers    closed, not   active
//	                               copied yet
//
// Every end is exclusive, everywhere. An empty range has Base == Next. There are no sentinels:
// "nothing copied yet" is Copied == Start, "everything expired" is an empty range, and what is
// not known is a Truth or a pointer, never a magic number.
package tier
