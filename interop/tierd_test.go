package interop_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rig is one tierd with a data_dir, a configuration and sources of its own.
type rig struct {
	t   *testing.T
	dir string
	env []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{t: t, dir: t.TempDir()}
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

// configure writes the configuration.
func (r *rig) configure(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.path("tierd.yaml"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// tierd runs the command to its end.
func (r *rig) tierd(args ...string) (stdout, stderr string, code int) {
	r.t.Helper()
	return output(r.t, r.dir, r.env, command, args...)
}

// must runs the command and wants it to succeed.
func (r *rig) must(args ...string) string {
	r.t.Helper()
	stdout, stderr, code := r.tierd(args...)
	if code != 0 {
		r.t.Fatalf("tierd %s: exit code %d\n%s\n%s", strings.Join(args, " "), code, stdout, stderr)
	}
	return stdout
}

// daemon starts tierd run.
func (r *rig) daemon() *process {
	r.t.Helper()
	return start(r.t, r.dir, "tierd", r.env, command, "run", "--log-level", "debug")
}

// reason, status and ls are what the tests look at of the JSON that docs/json.md describes.
type reason struct {
	Code  string `json:"code"`
	Text  string `json:"text"`
	Alarm bool   `json:"alarm"`
}

type status struct {
	Ready   bool     `json:"ready"`
	Reasons []reason `json:"reasons"`
	Sources []struct {
		Name    string   `json:"name"`
		Reasons []reason `json:"reasons"`
	} `json:"sources"`
	Tables []struct {
		Table     string `json:"table"`
		TierState string `json:"tier_state"`
		TierEpoch int    `json:"tier_epoch"`
	} `json:"tables"`
	Logs []logStatus `json:"logs"`
}

type logStatus struct {
	Log          string   `json:"log"`
	LogStart     *int64   `json:"log_start"`
	CopiedOffset *int64   `json:"copied_offset"`
	Reasons      []reason `json:"reasons"`
}

// String shows what stands behind the pointers.
func (l logStatus) String() string {
	text, err := json.Marshal(l)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (r *rig) status() (s status, err error) {
	r.t.Helper()
	stdout, stderr, code := r.tierd("status", "--output", "json")
	if code != 0 {
		return s, fmt.Errorf("status: exit code %d: %s", code, stderr)
	}
	return s, json.Unmarshal([]byte(stdout), &s)
}

// log is the status of one log.
func (r *rig) log(id string) (logStatus, error) {
	r.t.Helper()
	s, err := r.status()
	if err != nil {
		return logStatus{}, err
	}
	for _, l := range s.Logs {
		if l.Log == id {
			return l, nil
		}
	}
	return logStatus{}, fmt.Errorf("status has no log %s", id)
}

// table waits until the table is in the tier state, and returns its epoch.
func (r *rig) table(name, state string) int {
	r.t.Helper()
	epoch := 0
	eventually(r.t, name+" is "+state, func() error {
		s, err := r.status()
		if err != nil {
			return err
		}
		for _, table := range s.Tables {
			if table.Table == name && table.TierState == state {
				epoch = table.TierEpoch
				return nil
			}
		}
		return fmt.Errorf("%+v", s.Tables)
	})
	return epoch
}

// segments are all files below dir whose names end in .log, with their SHA-256, by path below dir.
func segments(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		out[filepath.ToSlash(rel)] = sum(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// wal makes a plain log of n segments of size bytes each in dir, the newest of which is open. Their
// files are two days old.
func wal(t *testing.T, dir string, n, size int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-48 * time.Hour)
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("%020d.log", i*1000))
		line := fmt.Sprintf("%s, segment %d\n", dir, i)
		data := strings.Repeat(line, size/len(line)+1)[:size]
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
	}
}
