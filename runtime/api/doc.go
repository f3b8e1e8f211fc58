// Package api is tierd's JSON contract: what status, ls and explain print, what HTTP and the unix
// socket answer, and the client that the command line uses. docs/json.md documents every field; the
// golden files in testdata show them.
//
// In all of it: an end is exclusive; an empty range has start == end; what is absent is null; lists
// are never null; instants are RFC 3339 in UTC; sizes are bytes; codes are stable words, texts are
// for people and may change. Fields may be added, never renamed or given another meaning.
//
// docs/json.md lists the paths, and docs/openapi.json describes each. Where one has LOG, that is
// "table/name". The last step of a path is the verb, so the slashes of a log or table may stand as
// they are, or be escaped as %2F; other characters are escaped as usual.
//
// An error is a status of 400 or above with {"error": {"code": ..., "text": ...}}.
package api
