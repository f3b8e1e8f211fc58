package main

import (
	"os"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/verify"
)

// withhold makes the store unable to give an object that it lists: its file is a link,
// which is not followed, whoever runs the test. The file is put back by what is returned.
func (l *lab) withhold(key string) (back func()) {
	l.t.Helper()
	aside := l.path("aside")
	if err := os.Rename(key, aside); err != nil {
		l.t.Fatal(err)
	}
	if err := os.Symlink(key, key); err != nil {
		l.t.Fatal(err)
	}
	return func() {
		l.t.Helper()
		if err := os.Rename(aside, key); err != nil {
			l.t.Fatal(err)
		}
	}
}

// TestVerifyGoesOnPastWhatIsNotGiven: an object that the store does not give is told, and what is
// lost elsewhere is found all the same.
func TestVerifyGoesOnPastWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	l := archived(t)
	_, whole := l.verify()
	for name, tc := range map[string]struct {
		part, suffix string
		unread       int64 // copies that are not read back
	}{
		"records":      {"logs/epochs/0/", ".log", 1},
		"an entry":     {"logs/epochs/0/manifest/", ".json", 0},
		"a checkpoint": {"logs/wal/many/manifest/L1-", ".json", 0},
	} {
		key := l.object(tc.part, tc.suffix)
		back := l.withhold(key)
		code, v := l.verify()
		if code != exitRuntime || len(v.Findings) != 1 || v.Findings[0].Kind != verify.KindUnread ||
			v.Findings[0].Fails || v.Unread != 1 || v.Read != whole.Read-tc.unread ||
			v.Findings[0].Object == nil || !strings.HasSuffix(key, *v.Findings[0].Object) {
			t.Errorf("%s: %d, %d of %d read, %+v", name, code, v.Read, whole.Read, v.Findings)
		}
		lost := l.object("logs/transactions/0/", ".log")
		if err := os.Rename(lost, lost+"-aside"); err != nil {
			t.Fatal(err)
		}
		code, text, _ := l.tierd("verify", "--read-data-subset", "0%")
		if code != exitCheck || !strings.Contains(text, "! transactions/0: ") ||
			!strings.Contains(text, "? ") || !strings.Contains(text, "; 1 unread") ||
			!strings.Contains(text, "not ok: ") {
			t.Errorf("%s, and a loss: %d %s", name, code, text)
		}
		if err := os.Rename(lost+"-aside", lost); err != nil {
			t.Fatal(err)
		}
		back()
	}
	code, v := l.verify()
	if code != exitOK || len(v.Findings) > 0 {
		t.Errorf("all is as it was: %d %+v", code, v)
	}
}

// TestVerifyEndsWhereTheStoreGivesNothing: whose ledger it is can be read where anything can.
func TestVerifyEndsWhereTheStoreGivesNothing(t *testing.T) {
	t.Parallel()
	l := archived(t)
	l.withhold(l.object("", "owner.json"))
	key := l.object("logs/epochs/0/", ".log")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(key, key); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := l.tierd("verify", "epochs/0")
	if code != exitRuntime || stdout != "" || !strings.Contains(stderr, "not a regular file") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}

// TestVerifyCountsWhatItReadBack: of a copy that is gone nothing was.
func TestVerifyCountsWhatItReadBack(t *testing.T) {
	t.Parallel()
	l := archived(t)
	_, whole := l.verify("epochs/0")
	if err := os.Remove(l.object("logs/epochs/0/", ".log")); err != nil {
		t.Fatal(err)
	}
	code, v := l.verify("epochs/0")
	if code != exitCheck || v.Segments != whole.Segments || v.Read != whole.Read-1 {
		t.Errorf("%d, %d of %d copies read back", code, v.Read, whole.Read)
	}
}
