// Package kbatch decodes the record batches of Kafka's log files, of every magic there ever was,
// and those of Fluss, which descend from them.
//
// It reads headers and checks checksums; records are never decoded and nothing is decompressed.
// Memory is constant: no length that a file claims is ever allocated.
//
// # Kafka
//
// All integers are big-endian. A log file is batches one after the other; the first 17 bytes have
// the same meaning in all of them (source: the Apache Kafka protocol guide, "Record Batch" and
// "Messages Sets"):
//
//	 0           8       12       16
//	+-----------+-------+--------+-------+
//	| offset    | length| (below)| magic |   size of the whole batch = 12 + length
//	+-----------+-------+--------+-------+
//
// Magic 2, 61 bytes and the records. The CRC-32C covers byte 21 to the end; the leader epoch lies
// outside it, since every broker writes its own:
//
//	 0 base offset      i64    21 attributes         i16    51 producer epoch  i16
//	 8 length           i32    23 last offset delta  i32    53 base sequence   i32
//	12 leader epoch     i32    27 base timestamp     i64    57 record count    i32
//	16 magic            i8     35 max timestamp      i64    61 records
//	17 crc              u32    43 producer id        i64
//
// Attributes: bits 0-2 codec, 3 timestamp type (0 create, 1 append), 4 transactional, 5 control,
// 6 the base timestamp is a delete horizon. Compaction leaves gaps, and batches without records
// whose base timestamp is -1.
//
// Magic 0 and 1, one message. The CRC-32 (IEEE) covers byte 16 to the end. Magic 0 has no
// timestamp. The same attribute bits as above hold the codec and, in magic 1, the timestamp type:
//
//	 0 offset           i64    16 magic              i8     18 timestamp i64, magic 1 only
//	 8 length           i32    17 attributes         i8        key: length i32 (-1: none), bytes
//	12 crc              u32                                    value: likewise
//
// A message with a codec is a wrapper: its value holds compressed messages. The offset of a wrapper
// is that of its last inner message in both magics; that of the first is not known without
// decompressing.
//
// # Fluss
//
// All integers are little-endian. The CRC-32C covers everything from the schema id to the end:
// base offset, commit timestamp and leader epoch lie outside it, since the server writes them, and
// so does the magic. The size of the whole batch is 12 + length, the last offset is the base plus
// its delta, and a batch of a changelog can have no record (source: LogRecordBatchFormat of Apache
// Fluss, August 2026):
//
//	                        magic 0    1    2
//	base offset         i64       0    0    0
//	length              i32       8    8    8
//	magic               i8       12   12   12
//	commit timestamp    i64      13   13   13    milliseconds
//	leader epoch        i32       -    -   21
//	crc                 u32      21   21   25
//	schema id           i16      25   25   29
//	attributes          i8       27   27   31    bit 0: the records append, and are no changes
//	last offset delta   i32      28   28   32
//	writer id           i64      32   32   36    -1: none
//	batch sequence      i32      40   40   44
//	record count        i32      44   44   48
//	statistics length   i32       -   48   52
//	statistics, records          48   52   56
//
// The releases up to 0.9 know another magic 1, with a leader epoch and without statistics. None of
// them writes it, and such a batch fails its checksum here.
package kbatch
