// Package audit is the record of every deletion: written and durable before the deletion happens,
// concluded after, and chained so that tampering shows.
//
// # Format, version 1
//
// The log is the files audit-000001.jsonl, audit-000002.jsonl and so on in one directory. Each line
// is one record, a JSON object that ends with a newline:
//
//	{"v":1,"seq":7,"prev":"4be0...","batch":6,"open_from":6,"intent":{...}}
//	{"v":1,"seq":8,"prev":"91c2...","batch":8,"open_from":7,"outcome":{...}}
//
//	v          version of the format
//	seq        number of the record: 1, 2, 3, ... over all files
//	prev       SHA-256 of the line before, without newline, hexadecimal; zeros before the first
//	batch      seq of the first record written together with this one; all before were durable
//	open_from  seq of the oldest intent without an outcome after this record; the next seq if none
//
// Exactly one of two follows. An intent says what is about to be deleted, and why:
//
//	action, log, range{base,next}, bytes, tier_epoch, attempt
//	sha256         of the local log file, or of the object, that goes
//	object         of the copy in the store; absent where there is none
//	reasons        code, text and rule (file:line) of what asked for it
//	policy_digest  SHA-256 over the policies and data that were asked
//	data_digest    SHA-256 over the data alone, so that the two can be told apart; absent in older
//	               records
//	at_ns          nanoseconds since the Unix epoch
//	input          the policies' input (policies/schema/input.json); absent if not recorded
//
// An outcome says how the intent with the number "of" ended: result (deleted, kept, unknown), text,
// at_ns. An intent has at most one. One without was under way when the process ended; tierd looks
// and concludes it when it starts again.
//
// A new file begins when a batch would take the last one beyond its size. It is made, and its name
// synced, before anything is written to it, and only when everything before is durable.
//
// # After a crash
//
// A crash may leave a batch half written at the end of the last file. Nothing of it was promised:
// Intend had not returned. Open cuts it off, and keeps what it cuts off as torn-NNNNNN-OFFSET.bin,
// because nothing of an audit log is thrown away. Whole records that had not been synced stay, as
// intents without an outcome. Anything else that is wrong is damage, names its file and line, and
// keeps the log from opening: no audit, no deletion. Two things tell them apart. A line that cannot
// be read is torn only if no later record says that it had been durable, and only if a crash can
// have left it: it is the beginning of a record, without its end, or has zeros where a page never
// reached the disk.
//
// # What the chain shows, and what not
//
// Every record carries the hash of the one before, so no record can be changed, removed, added or
// moved without changing all after it. Whoever can write the files can still cut records off the
// end, or write the whole chain anew. Verify therefore gives the hash of the last record: kept
// somewhere else, it is an anchor that a later log must contain. Likewise nothing vouches for the
// bytes of the last batch itself: if they rot to zeros, it is taken for torn, and kept aside.
//
// Old files may be moved away, oldest first, but for the last two and those with intents that have
// no outcome; Verify then says at which record the log begins.
package audit
