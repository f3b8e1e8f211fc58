// Package verify looks whether the store has what the ledger says that it has: manifest entries,
// objects, sizes, hashes, record batches, and nothing that nobody knows.
//
// It goes by the ledger, asks the store for each object by name, and reads no local file. It
// changes nothing. What it finds is a Finding; what keeps it from looking is an error.
package verify
