package config

import (
	"fmt"
	"testing"
)

// BenchmarkLoad measures how long it takes to read a configuration with many tables.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		content := many(n)
		b.Run(fmt.Sprintf("tables=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Parse(home+"tierd.yaml", content, newMachine().host()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
