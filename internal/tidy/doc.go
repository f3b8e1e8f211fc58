// Package tidy holds the rules that the source tree keeps, as tests run them.
//
// A rule is a function from parsed files to violations. What a rule knows of the tree (who may
// import whom, where the clock may be read) stands in a table beside it, so that a change of the
// architecture is a change of a table that a reviewer sees.
//
// Where a line has a good reason to differ, a comment on it or on the line above says so:
//
//	//tidy:ordered the result is sorted below
//
// Only the rules ordered, parallel and skip can be answered so. A marker without a reason, or that
// answers nothing, is a violation itself.
package tidy
