// Package choose makes the choices of simulated histories. A history asks one Chooser for all that
// chance, a search or a file may decide, so that the same history can be drawn at random, tried
// exhaustively, read from bytes, written down, replayed and made smaller.
//
// A choice has a label, and one of n outcomes, numbered from 0; where outcomes have names, those
// are written down too. By convention outcome 0 is the simplest one: shrinking goes there. A choice
// whose label is Step begins a step, and its outcome 0 ends the history.
//
// # The scenario file
//
// A Scenario is JSON, one object:
//
//	{"format": "tiersim scenario", "version": 1,
//	 "seed": "17",                        where it came from; for people
//	 "property": "S1 NoUncopiedDelete",   what it breaks; absent where nothing
//	 "segment": "orders/0@10",            of which segment; absent where of none
//	 "digest": "9f...",                   of configuration, policies and data
//	 "layout": "kafka",                   of the simulated sources; absent in older files
//	 "medium": "bbolt",                   of the ledger: a real file; absent where it is in memory
//	 "exhaust": [2, 4, 1],                bounds of the search that found it; absent for chance
//	 "choices": [
//	  {"label": "step", "of": 31, "pick": 4, "name": "owner: rolls"},
//	  {"label": "log", "of": 3, "pick": 0, "name": "orders/0"},
//	  {"label": "segments", "of": 3, "pick": 1, "said": "2"}, ...]}
//
// What is said of an outcome is what it means, for people.
//
// A replay asks that each choice have the label, the number of outcomes and the name that the file
// has: a file of another program, or of other policies, is refused with the number of the choice
// and not bent into some other history.
package choose
