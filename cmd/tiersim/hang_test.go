package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inChild is the environment of a process that runs one test, whose name it is: what that leaves
// running ends with the process.
const inChild = "TIERD_TEST_IN_CHILD"

// TestPolicyHang: an expression that does not end, in a policy or in a property, ends the command
// with its place, and with an exit code of its own.
func TestPolicyHang(t *testing.T) {
	t.Parallel()
	if os.Getenv(inChild) == t.Name() {
		hangs(t)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	dir := t.TempDir()
	endless, err := os.ReadFile("../../policies/rego/testdata/endless.rego")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "endless.rego"), endless, 0o600)
	}
	if err := errors.Join(err, os.Mkdir(filepath.Join(dir, "tmp"), 0o700)); err != nil {
		t.Fatal(err)
	}
	child.Dir = dir
	child.Env = append(os.Environ(), inChild+"="+t.Name(), "TMPDIR="+filepath.Join(dir, "tmp"))
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all was seen") {
		t.Errorf("%v:\n%s", err, out)
	}
}

func hangs(t *testing.T) {
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("tierd.yaml", "data_dir: ./d\nsources: [{name: wal, layout: plain, path: ./wal}]\n"+
		"bucket: {type: FILESYSTEM, config: {directory: ./bucket}}\n"+
		"defaults: {table.log.ttl: 0, table.log.local-ttl: 1h}\npolicies: {paths: [endless.rego]}\n")
	begin := func(args ...string) string {
		var out bytes.Buffer
		code := run(t.Context(), args, system{stdout: &out, stderr: &out, lookupEnv: os.LookupEnv,
			lookEvery: 250 * time.Millisecond}) // so that a slow machine comes to what never ends
		if code != exitHang {
			t.Errorf("%q: exit code %d, want %d", args, code, exitHang)
		}
		return out.String()
	}
	const why = "endless.rego:6 or next: an expression takes for ever, asked about delete_local of "

	// Where the ledger lies in a file, that goes too.
	said := begin("check", "--seeds", "25..26", "-j", "1", "--junit", "j.xml", "--json", "j.json",
		"--github")
	junit, _ := os.ReadFile("j.xml")
	json, _ := os.ReadFile("j.json")
	for text, want := range map[string]string{
		said: "\nPOLICY HANG: seed 25: " + why,
		said + "\x00": "\nnot passed\n::error file=endless.rego,line=6,title=POLICY HANG::seed 25: " +
			why,
		string(junit): `message="seed 25: ` + why,
		string(json):  `"policy_hang": "seed 25: ` + why,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(said, "VACUOUS") || strings.Count(string(junit), "<failure") != 1 {
		t.Errorf("it says more than it knows:\n%s\n%s", said, junit)
	}
	if left, err := filepath.Glob("tmp/tiersim-*"); len(left) > 0 || err != nil {
		t.Errorf("%v is left, %v", left, err)
	}

	endless, err := os.ReadFile("endless.rego")
	if err != nil {
		t.Fatal(err)
	}
	put("endless.rego", strings.NewReplacer("tierd.endless", "tierd.sim", "deny", "violation").
		Replace(string(endless)))
	if said := begin("exhaust", "--segments", "1", "--actions", "1"); !strings.HasPrefix(said,
		"tiersim: POLICY HANG: "+why) {
		t.Error(said)
	}
	t.Log("all was seen")
}
