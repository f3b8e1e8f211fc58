// Package offsets is the ledger: tierd's durable record of what was copied, per log, how far, and
// what is under way.
//
// A Ledger takes records (tier.Record), checks each against what it holds, and makes it durable or
// refuses it. The rules that decide are pure (rules.go for copies, tiering.go for tables and
// epochs, remote.go for the end of remote data): they read, and return a draft of what changes.
// Records that come at the same time are committed together (append.go). What the engine needs at
// every step, the state of logs and tables, is kept in memory; copies, attempts and tombstones are
// read from the medium by key.
//
//	Append --> queue --> one of the callers: decide, decide, ... --> one commit --> all are told
//	                                            |                        |
//	                                          refused               Medium: bbolt, or memory
//
// A ledger stops for good at the first commit that fails, at the first entry that is damaged, and
// at the first record that tells of a deletion without a copy: from then on it gives the same error
// to everyone, and the process must end. It never goes on from a state that is not known.
//
// # Format
//
// The medium holds keys in byte order, each with a value. Numbers in keys are big-endian.
//
//	key   kind u8 | ...
//	      00                                      the ledger itself: the root
//	      01 | log number u64                     state of a log
//	      02 | log number u64 | position u64      finished copy
//	      03 | log number u64 | position u64      attempt, a copy under way
//	      04 | log number u64 | position u64      tombstone, an abandoned attempt
//	      05 | log number u64 | position u64      hole
//	      06 | table name                         state of a table
//	      07 | attempt id, 16 bytes               where the attempt is
//	      08 | log number u64 | position u64      mark, where a start, clip or epoch is
//	      09 | number u64                         part of the journal; in a bbolt file alone
//	      10 and up                               free
//
// Logs are numbered as they are opened, from 1; a number is never given twice. At a position of a
// log there is at most one of copy, attempt, tombstone, hole and mark. Holes and marks stay for
// ever; which holes count still follows from the log's state.
//
//	value version u8 | body | CRC32C u32, big-endian, of key, version and body
//
// The envelope stays as it is in all versions. A value whose sum is wrong is damaged and never
// used; one whose sum is right and whose version is not known was written by a newer tierd. A new
// kind of key raises the format in the root, so that an older tierd refuses the ledger as a whole.
// Format 1 had no journal; this one is 2.
//
// In bodies of version 1, "u" is an unsigned and "i" a zigzag varint (encoding/binary), text is u
// bytes, a range is base i | length i, times are nanoseconds since the Unix epoch.
//
//	root      format u | ledger id, 16 bytes | next log number u | highest time seen i |
//	          rebuilt at i | entries u | sum u64, big-endian
//	log       table text | name text | source text | layout text | incarnation text | epoch u |
//	          fresh u | start i | copied i | log start i | next position u | finished copies u |
//	          copies that are out of the log u |
//	          n u, n ranges: copies and holes beyond copied | n u, n ranges: expired |
//	          n u, n positions u: unpublished | n u, n counts u: checkpoints |
//	          n u, n times {range | SHA-256, 32 bytes | at i}: accepted losses |
//	          n u, n times {start i | at i | cause text}: moves of the log start |
//	          n u, n times {position u | offset i}: clips |
//	          1 u8 if tierd deleted its last local segment, else nothing
//	copy      attempt id, 16 bytes | epoch u | range | (copied offset then - range.next) i |
//	          verified u8 (0 no, 1 size, 2 sample, 3 full) | mtime i | finished at i |
//	          largest record time i | batches i | (last next - range.next) i |
//	          n u, n files | n u, n times {leader epoch i | start i}
//	file      bytes shared with the name before u | rest of the name text | size i |
//	          SHA-256, 32 bytes | CRC32C u32, big-endian | inode u | (size on disk - size) i |
//	          mtime i
//	attempt   attempt id, 16 bytes | epoch u | range | started at i | n u, n names text
//	tombstone attempt | cause text | abandoned at i
//	hole      epoch u | range | (copied offset then - range.next) i | cause text | at i
//	mark      what u8 (1 start, 2 clip, 3 epoch opened) | epoch u | offset i |
//	          (copied offset then - offset) i | at i
//	table     state text | epoch u | policy text | fresh u | since i | entry text |
//	          window {since i | segments i | bytes i} | dropped at i | paused u8 (0, 1) |
//	          if 1: code text | text | rule text | title text | until i
//	attempt   log number u | position u
//	  id
//
// The root counts all other entries and sums up their checksums, each scrambled to 64 bits, modulo
// 2^64. So an entry that is missing, of an older commit, or there twice is found although its own
// checksum fits. All entries are checked when a ledger is opened.
//
// # Journal
//
// In a bbolt file each commit appends what it changes to the journal, in one or several parts that
// are numbered from 0, and puts the root into its place too. The changes are kept in memory, and
// hide what lies under the same keys. Once the journal has 2 MiB, the next commit first puts all of
// its changes where they belong, in the order of their keys, and empties it (journal.go). So a page
// is written once for many records of its log.
//
//	part      n times {key text | value text}, until the end; an empty value deletes the key
//
// Above it nobody knows of the journal: a Medium gives, and the root sums up, the entries as they
// are with its changes.
//
// # Rebuilding
//
// A Builder fills a new medium with what is known elsewhere (package runtime/rebuild). It derives
// the copied offset, the ranges beyond it and the holes by the same functions as the rules do, and
// the root keeps when that was.
//
// # Damage
//
// What cannot be read as it was written is tier.ErrDamaged, with the entry or page and what to do.
// Nothing of such a ledger is used. What a ledger cannot notice is that all of it is of an older
// commit, as from a backup, or where bbolt falls back to the commit before because the last one's
// page is torn. Then copied offsets are lower than they were, never higher; the manifests in the
// store, which know more, show it.
package offsets
