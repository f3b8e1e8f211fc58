// Package rewind takes an image of everything that is reachable from a value, puts it back in
// place, and tells two such worlds apart. It is for a search that tries many ways to go on from one
// moment of a program of one thread, whose parts know each other by pointers and closures: no copy
// of it could have closures that mean the copy.
//
// What is reached are pointers, slices up to their length, maps, strings, and what interfaces hold,
// also in fields that are not exported. Functions and channels are not gone into: what a closure
// has captured has to be reachable otherwise, or never change. An unsafe.Pointer that leads
// somewhere panics, as within an atomic.Pointer: nobody knows to what.
//
// Memory is looked at by package unsafe, and written to by package reflect alone, which tells the
// garbage collector of pointers.
package rewind
