package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this very command as "tierd".
func TestMain(m *testing.M) {
	if err := private(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testscript.Main(m, map[string]func(){"tierd": main})
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
		Setup:               shortSocket,
	})
}

// shortSocket gives a script a directory for sockets of its own.
func shortSocket(env *testscript.Env) error {
	env.Setenv("XDG_RUNTIME_DIR", env.WorkDir)
	plugins, err := filepath.Abs("../../testdata/plugins")
	if err != nil {
		return err
	}
	env.Setenv("PLUGINS", plugins)
	examples, err := filepath.Abs("../../policies/examples")
	if err != nil {
		return err
	}
	env.Setenv("EXAMPLES", examples)
	return nil
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
