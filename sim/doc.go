// Package sim runs tierd's own engine, executor, gate, policies and adapters in a world of its own:
// a clock that is told, a disk and a store in memory that can fail and crash, one thread.
//
// A World has one process at a time. Run plays the daemon: it scans, performs the engine's effects
// one by one in the order in which they came, and feeds the results back until nothing is left.
// Crash stops the machine and drops what was not synced, Kill ends the process alone; Start begins
// a new process on what is left.
//
//	owner of the logs    process (engine, exec, gate, ...)
//	        |                |  each operation is a Point: Watch decides its Fate
//	        v                v
//	      disk             disk, store, ledger  <---- Oracle: sees, looks, judges
//
// Every single operation of the process on disk, store or ledger is a Point, at which the process
// can be stopped, fail, or be lied to. The Oracle stands below: it has its own record of what the
// owner of the logs wrote, and judges each point and the world between any two effects by it.
package sim
