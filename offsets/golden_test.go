package offsets_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tierd/tierd/offsets"
	"github.com/tierd/tierd/offsets/offsetstest"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// historic returns a medium on which the history took place.
func historic(t testing.TB) *offsets.Memory {
	t.Helper()
	m := offsets.NewMemory([16]byte{0xCA, 0xFE, 15: 0x01})
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range offsetstest.History() {
		if _, err := l.Append(context.Background(), r); err != nil {
			t.Fatalf("append %T: %v", r, err)
		}
	}
	return m.Crash()
}

// snapshot opens a ledger and reads all of it.
func snapshot(t testing.TB, m offsets.Medium) offsetstest.Snapshot {
	t.Helper()
	l, err := offsets.Open(m)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := offsetstest.Take(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dump writes all entries as lines of hexadecimal key and value.
func dump(t *testing.T, m offsets.Medium) []byte {
	t.Helper()
	var out bytes.Buffer
	err := m.View(func(r offsets.Reader) error {
		return r.Scan(nil, nil, func(key, value []byte) error {
			fmt.Fprintf(&out, "%x = %x\n", key, value)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// undump makes a medium of a dump.
func undump(t *testing.T, text []byte) *offsets.Memory {
	t.Helper()
	m := offsets.NewMemory([16]byte{})
	err := m.Update(func(tx offsets.Tx) error {
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			k, v, ok := strings.Cut(lines.Text(), " = ")
			key, kerr := hex.DecodeString(k)
			value, verr := hex.DecodeString(v)
			if !ok || kerr != nil || verr != nil {
				return fmt.Errorf("not a line of a dump: %q", lines.Text())
			}
			if err := tx.Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGolden pins the bytes of the format that is written, and that each format is read for ever.
// Version 1 had no journal, which a medium in memory has not either.
func TestGolden(t *testing.T) {
	t.Parallel()
	const file = "testdata/v2.txt"
	m := historic(t)
	written := dump(t, m)
	if *rewrite {
		if err := os.WriteFile(file, written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := snapshot(t, m)
	for _, name := range []string{file, "testdata/v1.txt"} {
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(golden), string(written)); diff != "" && name == file {
			t.Errorf("the bytes that are written have changed (-golden +written):\n%s", diff)
		}
		if diff := cmp.Diff(want, snapshot(t, undump(t, golden))); diff != "" {
			t.Errorf("%s is read differently:\n%s", name, diff)
		}
	}
}
