// Package read gives the archived log back: one contiguous sequence from the log start to the local
// end, over both tiers.
//
//	log start                       copied offset      high watermark
//	    |                                 |                  |
//	    v                                 v                  v
//	----[ remote only )[ both: read locally )[ local only )[ not served
//
// # What is served
//
// Offsets in [log start, high watermark), and of them only what the source has now or a finished
// copy of the ledger holds: of an epoch that counts, and below every clip that came after it. Where
// both tiers have an offset the local one is read, and where that went away between looking and
// reading, the remote one. Ranges that neither has (holes, and what compaction left) are stepped
// over. Where the layout has no high watermark the end of the last record that a scan saw stands in
// its place. A high watermark below the copied offset is not known yet, as after a broker's start:
// what was copied was below it once.
//
// Every batch of the layouts kafka and fluss is checked by its own checksum before it is handed
// out, and one that comes from the store must lie in the range that its copy is of. What no reader
// can see are objects that a store has exchanged and that hold the same offsets; verify does. Of
// plain logs tierd knows no records; see Read.
//
// # How an offset is found
//
// In the remote tier: by the ledger, which copy has it; by its .index, read whole by one request
// and checked by its SHA-256, near which byte; and by the headers of batches from there on. So a
// cold read takes one request for the index and one for the bytes before the first byte is out, as
// long as the batch has at most a megabyte. An index that is missing, or is not what was copied, is
// made anew from the log, which takes reading the log's file up to the offset.
//
// # The cache
//
// Objects are immutable, so bytes once read stay right. They are kept in chunks, in memory and,
// with a directory, on disk: a file is the chunk's bytes and a CRC32C (big-endian u32) of its name
// and these. The name is the first 16 bytes of the SHA-256 of the chunk's key in hexadecimal, and
// ".v2". One that does not fit its sum is thrown away. Concurrent readers of a chunk share one
// request.
//
// # Ends
//
// The log start moves first and objects go after a grace. Whoever began to read before that goes on
// until the grace is over, and then gets ErrGone; whoever comes later gets OutOfRange at once.
package read
