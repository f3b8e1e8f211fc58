// Package sim runs tierd's own engine, executor, gate, policies and adapters in a world of its own:
// a clock that is told, a disk and a store in memory that can fail and crash, one thread.
//
// A World has one process at a time. Run plays the daemon: it scans, performs the engine's effects
// one by one in the order in which they came, and feeds the results back until nothing is left.
// Crash ends the process and drops what was not synced; Start begins a new one on what is left.
package sim
