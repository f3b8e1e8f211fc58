// Package tierd_test checks the whole tree against the rules of internal/tidy.
package tierd_test

import (
	"os"
	"testing"

	"github.com/tierd/tierd/internal/tidy"
)

// TestTidy runs every rule over every Go file of the module.
func TestTidy(t *testing.T) {
	t.Parallel()
	tree := os.DirFS(".")
	files, err := tidy.Load(tree)
	if err != nil {
		t.Fatal(err)
	}
	found := tidy.Imports(files)
	found = append(found, tidy.Bans(files)...)
	found = append(found, tidy.Shape(files)...)
	found = append(found, tidy.Docs(files)...)
	found = append(found, tidy.Tests(files)...)
	ordered, err := tidy.MapOrder(".", files)
	if err != nil {
		t.Error(err)
	}
	found = append(found, ordered...)
	dead, err := tidy.Testdata(tree, files)
	if err != nil {
		t.Error(err)
	}
	found = append(found, dead...)
	found = append(found, tidy.Markers(files)...)
	tidy.Sort(found)
	for _, v := range found {
		t.Error(v)
	}
}
