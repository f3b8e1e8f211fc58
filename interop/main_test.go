package interop_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var (
	tierdFlag   = flag.String("tierd", "../bin/tierd", "the tierd command that is tested")
	systemsFlag = flag.String("systems", ".systems", "where fetch.sh has put the systems")
)

// command and systems are the absolute forms of the flags.
var command, systems string

// TestMain refuses to run where something is missing: tests that are left out prove nothing.
func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	for _, p := range []struct {
		to   *string
		flag string
		need string
	}{
		{&command, *tierdFlag, ""},
		{&systems, *systemsFlag, "bin/versitygw"},
		{&systems, *systemsFlag, "bin/fake-gcs-server"},
		{&systems, *systemsFlag, "azurite/node_modules/azurite/dist/src/blob/main.js"},
	} {
		if *p.to, err = filepath.Abs(p.flag); err == nil {
			_, err = os.Stat(filepath.Join(*p.to, p.need))
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%v: run the tests with make interop, which fetches it\n", err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}
