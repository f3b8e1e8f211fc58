// Package facts reads the user's own facts from files, for policies to see as input.facts.NAME.
//
// Somebody else writes the files: a script, an exporter, a cron job. So they may be anything at any
// time, and a fact is known only while its file
//
//   - can be read and is a regular file of at most 16 MiB, or a link to one,
//   - did not change while it was read,
//   - is one whole document of JSON or YAML, by its extension, in which no key stands twice, and
//   - is not older than its limit. The age is that of its modification time, which must not lie in
//     the future either.
//
// Otherwise the fact is not known, with a reason; nothing of an earlier content is used. A JSON
// file that is cut off is never whole, while a YAML file may be: write to another name and rename.
package facts
