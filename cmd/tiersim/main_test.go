package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this very command as "tiersim".
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"tiersim": main})
}

// TestScripts runs testdata/script/*.txt. Besides testscript's own commands there is
//
//	exit CODE PROGRAM ARGS...
//
// which wants this very exit code.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exit": exit},
	})
}

func exit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE PROGRAM ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		code = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// TestInterrupted ends a run before it is through: what was kept until then is no pass.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"check", "--allow-vacuous", "--github"}, {"exhaust"},
		{"coverage"}} {
		var out bytes.Buffer
		if args = append(args, "--builtin"); args[0] != "coverage" {
			args = append(args, "--out", t.TempDir())
		}
		none := func(string) (string, bool) { return "", false }
		code := run(ctx, args, system{stdout: &out, stderr: &out, lookupEnv: none})
		said := out.String()
		if code != exitInterrupted || !strings.Contains(said, "\ninterrupted: ") ||
			strings.Contains(said, "\npassed") ||
			args[0] == "check" && strings.Contains(said, "VACUOUS") {
			t.Errorf("%q: exit code %d, want %d, and no pass:\n%s", args, code, exitInterrupted, said)
		}
	}
}
