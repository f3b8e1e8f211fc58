package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestARestoreGoesOnPastWhatIsMissing: what the store has lost, altered or does not give of some
// logs is told, and all else is written, also behind it; run again, it goes on with these alone.
func TestARestoreGoesOnPastWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, workers := range []string{"1", "4"} {
		l := archived(t)
		original := files(t, "../../testdata/kafka/v4")
		to := l.path("out")
		lost := l.object("logs/epochs/0/", "140.log")
		data, err := os.ReadFile(lost)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(lost); err != nil {
			t.Fatal(err)
		}
		back := l.withhold(l.object("logs/epochs/0/", "210.index"))
		code, r, stderr := l.restore("epochs", "--to", to, "--workers", workers)
		if code != exitRuntime || !strings.Contains(stderr, "not complete: 2 of ") ||
			!strings.Contains(stderr, "140.log") || len(r.Missing) != 2 ||
			r.Written != r.Files-2 || r.Kept > 0 {
			t.Fatalf("%s: %d %+v %s", workers, code, r, stderr)
		}
		m := r.Missing[0]
		if m.Kind != "lost" || m.Log != "epochs/0" || m.Base != 140 || m.Next != 210 ||
			m.File != "epochs-0/00000000000000000140.log" || !strings.HasSuffix(lost, m.Object) ||
			r.Missing[1].Kind != "unread" {
			t.Errorf("%s: %+v", workers, r.Missing)
		}
		got := files(t, to)
		for name := range original {
			_, there := got[name]
			log := strings.HasPrefix(name, "epochs-")
			missing := name == "epochs-0/00000000000000000140.log" ||
				name == "epochs-0/00000000000000000210.index"
			if log && !active(original, name) && there == missing {
				t.Errorf("%s: %s: there is %v", workers, name, there)
			}
		}
		for name, there := range map[string]bool{"epochs-1/leader-epoch-checkpoint": true,
			"epochs-1/partition.metadata": true, "epochs-0/leader-epoch-checkpoint": false,
			"epochs-0/partition.metadata": false, "recovery-point-offset-checkpoint": false,
			".tierd-restore.json": true} {
			if _, err := os.Stat(filepath.Join(to, name)); errors.Is(err, fs.ErrNotExist) == there {
				t.Errorf("%s: %s: %v", workers, name, err)
			}
		}
		code, text, _ := l.tierd("restore", "epochs", "--to", to)
		if code != exitRuntime || !strings.Contains(text, "! epochs/0: [140, 210) lost: ") ||
			!strings.Contains(text, ": 0 files written, ") || !strings.Contains(text, ", 2 missing") {
			t.Errorf("%s, again: %d %s", workers, code, text)
		}
		if err := os.WriteFile(lost, data, 0o600); err != nil {
			t.Fatal(err)
		}
		back()
		code, r, stderr = l.restore("epochs", "--to", to)
		if code != exitOK || r.Written != 2 || len(r.Missing) > 0 {
			t.Errorf("%s: all is there again: %d %+v %s", workers, code, r, stderr)
		}
		got = files(t, to)
		if !bytes.Equal(got["epochs-0/00000000000000000140.log"], data) ||
			len(got["recovery-point-offset-checkpoint"]) == 0 {
			t.Errorf("%s: it is not complete", workers)
		}
	}
}

// TestARestoreEndsWhereTheStoreGivesNothing: nothing is called missing then.
func TestARestoreEndsWhereTheStoreGivesNothing(t *testing.T) {
	t.Parallel()
	l := archived(t)
	key := l.object("logs/epochs/0/", "140.log")
	l.withhold(l.object("", "owner.json"))
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(key, key); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := l.tierd("restore", "epochs/0", "--to", l.path("out"))
	if code != exitRuntime || stdout != "" || !strings.Contains(stderr, "not a regular file") {
		t.Errorf("%d %s%s", code, stdout, stderr)
	}
}
