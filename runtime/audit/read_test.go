package audit

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/runtime/tier"
)

// TestDataDigest: a record tells policies and data from data alone; one of before has only the
// former, as the golden ones do.
func TestDataDigest(t *testing.T) {
	t.Parallel()
	dir := newMem()
	l := mustOpen(t, dir, 2000)
	want := deletion(0)
	want.Data = "44136fa3"
	if _, err := l.Intend(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	mustIntend(t, l, 10)
	var got []tier.Deletion
	if err := Read(dir, func(in tier.Intent) { got = append(got, in.Deletion) }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tier.Deletion{want, deletion(10)}, got); diff != "" {
		t.Error(diff)
	}
	if text := content(t, dir, nameOf(1)); strings.Count(text, `"data_digest":"44136fa3"`) != 1 ||
		strings.Count(text, "data_digest") != 1 {
		t.Error(text)
	}
}

// TestRead: every announced deletion is shown as it was announced, whatever became of it, from
// file to file.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := newMem()
	var none []tier.Intent
	collect := func(list *[]tier.Intent) func(tier.Intent) {
		return func(in tier.Intent) { *list = append(*list, in) }
	}
	if err := Read(dir, collect(&none)); !errors.Is(err, tier.ErrVanished) || len(none) > 0 {
		t.Errorf("no log: %v, %v", err, none)
	}
	l := mustOpen(t, dir, 2000)
	var want []tier.Intent
	for base := range tier.Offset(7) {
		seq := mustIntend(t, l, base*10)
		want = append(want, tier.Intent{Seq: seq, Deletion: deletion(base * 10)})
		if base != 3 {
			mustConclude(t, l, seq, deleted())
		}
	}
	var got []tier.Intent
	if err := Read(dir, collect(&got)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	text := content(t, dir, nameOf(1))
	rewriteFile(t, dir, nameOf(1), strings.Replace(text, "age > 1d", "age > 9d", 1))
	if err := Read(dir, collect(&got)); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("a changed record: %v", err)
	}
}
