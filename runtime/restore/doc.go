// Package restore writes archived logs back as directories: segment files, indexes and checkpoints
// as the source system writes them.
//
// A restore goes into a directory that is empty, or that holds an unfinished restore of the same.
// First comes a marker, ".tierd-restore.json", which goes last; while it is there the directory is
// not complete. Each file is written under its name and ".tierd-part", checked on the way by its
// SHA-256 and by the checksums of its record batches, synced, and then given its name, which must
// be free. So a restore that was killed goes on where it stopped, and no file that is there is ever
// replaced. One that the store has lost, altered or does not give is left out, the others are
// written, those behind it too, and the marker stays.
//
// # Layout kafka
//
//	<topic>-<partition>/
//	    the files of each copied segment, byte for byte, with their mtimes
//	    leader-epoch-checkpoint            from the batches of the copies
//	    partition.metadata                 where the topic's id is known
//	log-start-offset-checkpoint            of the logs that begin within a segment
//	recovery-point-offset-checkpoint       each log's end
//	replication-offset-checkpoint          likewise: all that was copied was below the high watermark
//
// A segment of which only a part counts, since a later copy or a divergence took the rest, is cut
// at batches and comes without its indexes, which the broker makes anew. What was never copied is
// not there: the segment that was active, and files of the broker as a whole.
//
// # Layout fluss
//
//	<database>/<table>-<table id>[/<partition>-p<partition id>]/log-<bucket>/
//	    the files of each copied segment, byte for byte, with their mtimes
//	recovery-point-offset-checkpoint       each log's end
//	high-watermark-checkpoint              likewise
//
// A tablet server takes directories for what they say only while its cluster knows table and
// partition under these ids, and removes the others when it starts. Cut segments are as above; a
// start within a segment is not written down anywhere, so that such a log begins with the segment.
//
// # Layout plain
//
//	<table>/<name>/    the files of each copied segment, byte for byte, with their mtimes
package restore
