// Package config reads tierd's one configuration file, and the policies and data that it names,
// as one generation: all of it, or nothing.
//
// The file is YAML, read strictly. Every key at every depth is known or an error, stands once, and
// has the right type; nothing is guessed and nothing is ignored. All problems of a file are
// reported together, each as
//
//	tierd.yaml:12:5: unknown key "table.log.tll" in defaults; did you mean "table.log.ttl"?
//
// with line and column (both from 1, the column in characters) of the key or value that is wrong.
// Anchors, aliases, merge keys, custom tags and further documents are refused, so that what stands
// in a place is what is in force there.
//
// Paths in the file are relative to the file's directory. Durations are numbers with the units ns,
// us, ms, s, m, h, d (24 hours) and w (7 days), such as 36h or 1d12h; a bare 0 is one. Sizes are
// whole numbers of bytes with the units kB, MB, ... (powers of 1000) or KiB, MiB, ... (of 1024).
//
// Table settings are resolved once, when the file is read: built-in default, then the section
// "defaults", then the first entry of "tables" whose name matches. The place of each value is kept,
// so that status and explain can name it.
package config
