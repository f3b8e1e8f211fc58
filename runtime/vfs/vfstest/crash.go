package vfstest

import (
	"testing"

	"github.com/tierd/tierd/runtime/vfs"
)

// crashesMax bounds the crashes that are tried of one state.
const crashesMax = 1 << 14

// EachCrash visits everything that a crash of m can leave.
func EachCrash(t *testing.T, m *vfs.Mem, visit func(disk *vfs.Mem)) {
	t.Helper()
	var choices, limits []int
	for range crashesMax {
		next := 0
		limits = limits[:0]
		visit(m.Clone().Crash(func(_ string, n int) int {
			if next == len(choices) {
				choices = append(choices, 0)
			}
			next++
			limits = append(limits, n)
			return choices[next-1]
		}))
		last := next - 1
		for last >= 0 && choices[last] == limits[last]-1 {
			last--
		}
		if last < 0 {
			return
		}
		choices = append(choices[:last:last], choices[last]+1)
	}
	t.Fatalf("more than %d crashes of one state", crashesMax)
}
