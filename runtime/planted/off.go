//go:build !planted

package planted

// Is reports whether the fault is planted: never.
func Is(Fault) bool { return false }
