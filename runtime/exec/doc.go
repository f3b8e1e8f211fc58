// Package exec performs one effect of the engine, with its durable sub-steps.
//
// The engine proposes from an index that may be stale; exec establishes at the moment of the deed
// that it may be done. It starts no goroutine and reads no clock of its own: the daemon calls it
// from its workers, the simulator from its single thread, each with its own clock, ledger medium,
// file system and bucket.
//
// Do returns a Result, also for what failed, and an error only where nothing is known to be durable
// any more (a commit or fsync of the ledger or the audit log failed): then the process must end.
package exec
