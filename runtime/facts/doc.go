// Package facts keeps the user's own facts, for policies to see as input.facts.NAME. Most are
// files, some are offsets that consumer groups have committed.
//
// Somebody else writes the files: a script, an exporter, a cron job. So they may be anything at any
// time, and a fact is known only while its file
//
//   - can be read and is a regular file of at most 16 MiB, or a link to one,
//   - did not change while it was read,
//   - is one whole document of JSON or YAML, as package document reads it,
//   - is what policies can be given, which null is not, neither as a whole nor within, and
//   - is not older than its limit. The age is that of its modification time, which must not lie in
//     the future either.
//
// Otherwise the fact is not known, with a reason; nothing of an earlier content is used. A JSON
// file that is cut off is never whole, while a YAML file may be: write to another name and rename.
//
// Offsets come from a broker, which is asked about all groups of a fact at one time. Policies see
// those of the log that they are asked about, and of no other:
//
//	{"billing": {"orders/0": 1042}}
//
// A group that has committed nothing of the log stands at 0. The fact is known while the last
// answer is not older than its limit; where the broker last gave none it is not known.
package facts
