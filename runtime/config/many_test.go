package config

import (
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
)

// many is a file with n entries of tables, of which every tenth is a glob.
func many(n int) []byte {
	var b strings.Builder
	b.WriteString(base + "tables:\n")
	for i := range n {
		star := ""
		if i%10 == 0 {
			star = "-*"
		}
		fmt.Fprintf(&b, "  - {name: \"orders-%06d%s\", table.log.ttl: 30d, labels: {n: \"%d\"}}\n",
			i, star, i)
	}
	return []byte(b.String())
}

// TestFindsTheFirst: the entry that governs is the first that matches, as if all were tried in
// turn.
func TestFindsTheFirst(t *testing.T) {
	t.Parallel()
	words := []string{"a", "b", "ab", "aba", "a*", "*", "?", "a?", "[ab]", "*b", "ab*", `\*`, `a\*`,
		"a*b", "[a-b]*", `\a`, "aa", "bb", "a*/b", "a/b"}
	asked := append([]string{"aab", "abab", "c", "*", "a*", "ba"}, words...)
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var m matcher
		names := make([]string, random.IntN(8))
		for i := range names {
			names[i] = words[random.IntN(len(words))]
			m.add(names[i], i)
		}
		for _, name := range asked {
			want, found := 0, false
			for i := 0; i < len(names) && !found; i++ {
				ok, _ := path.Match(names[i], name)
				want, found = i, ok || names[i] == name
			}
			got, ok := m.find(name)
			if ok != found || ok && got != want {
				t.Fatalf("%q among %q: %d, %t; want %d, %t", name, names, got, ok, want, found)
			}
		}
	}
}

// TestManyTables: loading and asking try few patterns on a name, however many entries there are.
// The steps are counted, not the time: globs are tried by their beginning alone.
func TestManyTables(t *testing.T) {
	t.Parallel()
	c, err := Parse(home+"tierd.yaml", many(10_000), newMachine().host())
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Fatalf("%d warnings, such as %s", len(c.Warnings), c.Warnings[0])
	}
	for prefix, globs := range c.match.globs {
		if len(globs) != 1 {
			t.Fatalf("%d globs are tried on names that begin with %q", len(globs), prefix)
		}
	}
	for name, want := range map[string]string{
		"orders-000001": "tierd.yaml:6", "orders-000010-x": "tierd.yaml:15",
		"orders-009999": "tierd.yaml:10004",
	} {
		got, ok := c.Table(name)
		if !ok || strings.TrimPrefix(got.Entry, home) != want {
			t.Errorf("%s: %q, %t; want %s", name, got.Entry, ok, want)
		}
	}
	if _, ok := c.Table("orders-000010"); ok {
		t.Error("orders-000010 is governed by a glob that does not match it")
	}
}
