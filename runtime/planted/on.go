//go:build planted

package planted

// chosen is the fault that is planted now.
var chosen Fault

// Choose plants a fault, and takes out the one before. It must not be called while anything runs.
func Choose(f Fault) { chosen = f }

// Is reports whether the fault is planted.
func Is(f Fault) bool { return chosen == f }
