// Package meter reads WebAssembly modules defensively and rewrites them so that what they may
// consume is counted, the same way on every engine and every machine.
//
// WebAssembly engines differ in how they stop a program that does not end, and in how deep it may
// recurse. A rewritten module counts for itself, in two globals that its own code cannot name:
//
//	fuel   i64, instructions left. Every basic block subtracts what it holds before it runs; an
//	       operation over a length (memory.copy, table.fill, memory.grow, ...) subtracts in
//	       proportion to that length first. Below zero the module traps.
//	stack  i64, slots of native stack left. A function that calls others takes its frame's share
//	       when it is entered and gives it back when it returns. Below zero the module traps.
//
// Fuel is subtracted in every block but compared with zero only where an execution that does not
// end must come by: at function entries and loop heads, and at operations over a length. Between
// two comparisons it can fall by no more than the size of one function, so it never wraps.
//
// Within a function the fuel is in a local, which engines keep in a register: it goes to the global
// before each call and comes back after it.
//
// The host sets both globals before each call and reads them after. It finds them by the export
// names in Metered, which are chosen so that they clash with no export of the module.
//
// Parse decodes every section, every instruction and every length of a module and refuses what is
// malformed, too large, or belongs to a proposal that tierd does not run, by its name. It bounds
// every count by the bytes that are there, so that a small file cannot ask for a large allocation
// here or in the engine that reads the file next. It does not check types: an engine must
// validate Sanitized before Meter is trusted, because the rewriting takes a valid module for
// granted.
package meter
