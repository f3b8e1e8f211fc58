// Package filesystem is a thanos objstore Bucket in a local directory: durable, atomic, confined.
//
// It stands in for the FILESYSTEM provider of thanos, with the same configuration. An object is a
// regular file whose path below the directory is its key; byte for byte, with nothing beside it:
//
//	<directory>/a/b/object         key "a/b/object"
//	<directory>/.tierd-tmp/N-7     the 7th upload of the process that calls itself N
//
// Upload writes a temporary file, makes it durable, renames it to its key and then makes durable
// every directory that was made or changed. So a reader sees a whole object or none, a reader of
// an object that is replaced goes on reading what it opened, and what was uploaded before a crash
// is there after it. A crash can leave a temporary file behind: never under a key, never listed,
// and removed by an upload an hour or more later. Bytes are copied by reading and writing, not by
// copy_file_range: on file systems that share extents, one rotten block would take both copies.
//
// Delete removes one object, durably, and then directories that are empty. Nothing follows links
// and no key leads out of the directory. Several processes may use one directory.
//
// A file system allows less than an object store: where "a" is an object, "a/b" cannot be one; and
// a step of a key is limited to what the file system allows, usually 255 bytes.
package filesystem
