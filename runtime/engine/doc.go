// Package engine decides what is worth doing, and does nothing itself.
//
// It is a deterministic state machine: Step takes the time and one event and returns effects, as
// data. It reads no clock, starts no goroutine, does no IO and knows no context; given the same
// events it returns the same effects. The daemon performs the effects on worker pools, the
// simulator performs them one by one in any order, and both feed the results back as events.
//
//	events                    +--------+                     effects
//	Restored, Started ------->|        |----> Open, Copy, Resolve
//	Reconfigured, Scanned --->|  Step  |----> Delete
//	Tick, Finished ---------->|        |----> RecordHole, Publish, Checkpoint, Pause
//	                          |        |----> Select (asks the plugins)
//	                          +--------+
//
// The engine's index may be stale: a segment may have gone, a copy may have been damaged. So an
// effect is only a proposal. Whoever performs it looks afresh, and the gate judges what was seen.
//
// An idle log costs nothing: logs with work wait in heaps, by due time or by the age of their
// oldest uncopied segment; a Tick touches only those that are due.
package engine
