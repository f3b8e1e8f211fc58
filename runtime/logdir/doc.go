// Package logdir reads the sources: directories of logs that other programs write.
//
// A Source finds the logs of one directory, tells which segments are closed, reads a segment once
// and in order with every check that its format allows, and removes one on a permit of the gate.
// It never follows a link and never leaves its directory.
//
// # Layout kafka
//
// A log directory of an Apache Kafka broker. Partitions are directories "<topic>-<partition>",
// split at the last dash; the log id is "topic/partition". Topics whose names begin with "__" are
// the broker's own and not tables. "topic-p.uniqueId-delete", "-future" and "-stray" are skipped.
//
//	meta.properties
//	replication-offset-checkpoint      high watermarks
//	recovery-point-offset-checkpoint   up to where the broker has fsynced
//	log-start-offset-checkpoint        where logs begin, if not at their first segment
//	cleaner-offset-checkpoint          up to where compacted logs were cleaned
//	<topic>-<partition>/
//	    %020d.log                      record batches; see package kbatch
//	    %020d.index .timeindex .txnindex .snapshot
//	    leader-epoch-checkpoint
//	    partition.metadata             the topic's id: the log's incarnation
//
// A segment is closed if another begins after it, and the high watermark and the recovery point
// have reached where that one begins. It ends there, so gaps between segments are absorbed. What
// the checkpoints do not say is taken for not reached. A topic that was compacted stays in the
// cleaner's checkpoint for ever; Config.Compacted can say that it no longer is.
//
// # Layout fluss
//
// A data directory of an Apache Fluss tablet server. A bucket is a log; its id is
// "database.table/bucket", in a partitioned table "database.table/partition-bucket". The ids of
// table and partition are its incarnation: "7", "7/3". Databases and tables whose names begin with
// "__" are Fluss's own.
//
//	high-watermark-checkpoint          high watermarks, by ids
//	recovery-point-offset-checkpoint   up to where the server has fsynced
//	disk.properties                    written by servers that lock the directory
//	.fluss_cleanshutdown               there while the server is down, if it ended cleanly
//	<database>/<table>-<table id>[/<partition>-p<partition id>]/log-<bucket>/
//	    %020d.log                      record batches; see package kbatch
//	    %020d.index .timeindex .writer_snapshot
//
// A segment is closed as above. Servers up to 0.9 write recovery points when they end, and not
// while they run: of theirs, which have no disk.properties, none is asked for. A segment's
// writer_snapshot is the one of its own base: the state of the writers before its first batch.
//
// A table with a primary key is recovered from its changelog, from where its last snapshot ends,
// which the directory does not tell. So of a changelog nothing is deleted. It is one if the table
// lies beside it (kv-<bucket>), or if its first batch is not one that appends.
//
// While a table or partition that was dropped has not been removed yet, and another of its name is
// there, two directories are the same log, which is left alone.
//
// # Layout plain
//
// Any tree of directories. Files whose whole name matches a pattern hold records, and its group
// "base" their first offset. A directory with such files is a log: a/b/c is the log c of the table
// a/b, a directory just below the source is a log of the table named like the source, and files in
// the source's own directory are its log "0". Files that share the name up to the first dot after
// the base belong to the segment. Names that begin with a dot are left alone. The content is not
// understood: it is hashed.
//
// # Deleting
//
// Removing a segment must never take a file that is not the one the permit is for, whatever
// happens between looking and unlinking, and a crash at any moment must leave a directory that can
// be put right. So the file with the records is first moved out of reach, then looked at:
//
//	1  rename  base.log -> .tierd-trash/base.log.pending     fsync both directories
//	2  compare inode, size and mtime; if they differ, rename back, never replacing
//	3  rename  .pending -> .dead                              fsync: from here on it is decided
//	4  unlink  base.index and the other files of the segment  fsync
//	5  unlink  .dead                                          fsync
//
// What a crash leaves is put right by the next scan: .pending was not compared and goes back,
// .dead was and is finished. Where both names of one file are left, the one in the trash goes.
//
// The trash lies in the log's own directory: it is the same file system, and a Kafka broker
// refuses to start on a directory in its root that is no partition, while it ignores directories
// in a partition. The records go first: a broker that starts in the middle takes an index without
// a log for an orphan and removes it, which is what was meant, while a log without its indexes
// would be kept and indexed anew.
//
// A tablet server ignores directories among a bucket's files too, and removes orphaned indexes.
//
// Beside a running broker nothing is removed at all: with delete-records it is the broker that is
// asked, and that removes. What it gave up is split off from the scan, until its files are gone.
//
// # Scanning
//
// A scan of an unchanged tree costs a stat for each log and its newest files. A listing is trusted
// while the directory's mtime stands still, unless that was younger than two seconds when it was
// listed, since a change within the clock's granularity would not be seen; and for ten minutes at
// most, since a file that is rewritten in place does not touch its directory.
package logdir
