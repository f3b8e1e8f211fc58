package offsetstest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tierd/tierd/offsets"
)

// testMedium shows the medium's contract without a ledger, on keys that a ledger does not use.
func testMedium(t *testing.T, disk Disk) {
	m, err := disk()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { m.Close() }()
	// Each step is a transaction: "a=1" puts, "a" deletes, "!" fails it. Then all keys in [b, d),
	// and all from b on, are what is said; within the transaction and after it.
	steps := []struct{ do, within, after, toEnd string }{
		{"", "", "", ""},
		{"c=3 a=1 b=2", "b=2 c=3", "b=2 c=3", "b=2 c=3"},
		{"b=22 d=4 c", "b=22", "b=22", "b=22 d=4"},
		{"c=5 b d !", "c=5", "b=22", "b=22 d=4"},
		{"none bb=6", "b=22 bb=6", "b=22 bb=6", "b=22 bb=6 d=4"},
		{"b b=7 bb=8 bb", "b=7", "b=7", "b=7 d=4"},
	}
	for i, s := range steps {
		err := m.Update(func(tx offsets.Tx) error {
			fails, err := perform(tx, s.do)
			if err != nil {
				return err
			}
			if got := between(t, tx, "b", "d"); got != s.within {
				t.Errorf("step %d, within: got %q, want %q", i, got, s.within)
			}
			return fails
		})
		if err != nil && err != errInjected || (err != nil) != strings.HasSuffix(s.do, "!") {
			t.Fatalf("step %d: got error %v", i, err)
		}
		for range 2 {
			err = m.View(func(r offsets.Reader) error {
				if got := between(t, r, "b", "d"); got != s.after {
					t.Errorf("step %d, after: got %q, want %q", i, got, s.after)
				}
				if got := between(t, r, "b", ""); got != s.toEnd {
					t.Errorf("step %d, to the end: got %q, want %q", i, got, s.toEnd)
				}
				if got := between(t, r, "d", "b"); got != "" {
					t.Errorf("step %d, backwards: got %q, want nothing", i, got)
				}
				return errInjected
			})
			if err != errInjected {
				t.Fatalf("step %d: a view hid the error: got %v", i, err)
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if m, err = disk(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const mediumPrefix = "\xF0"

// perform does what a step says.
func perform(tx offsets.Tx, do string) (fails, err error) {
	for _, word := range strings.Fields(do) {
		key, value, put := strings.Cut(word, "=")
		switch {
		case key == "!":
			return errInjected, nil
		case put:
			err = tx.Put([]byte(mediumPrefix+key), []byte(value))
		default:
			err = tx.Delete([]byte(mediumPrefix + key))
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// between reads the keys in [from, to), and checks that Get agrees.
func between(t *testing.T, r offsets.Reader, from, to string) string {
	var end []byte
	if to != "" {
		end = []byte(mediumPrefix + to)
	}
	var out []string
	err := r.Scan([]byte(mediumPrefix+from), end, func(key, value []byte) error {
		if got, err := r.Get(key); err != nil || string(got) != string(value) {
			return fmt.Errorf("key %q: get %q, scan %q, error %v", key, got, value, err)
		}
		out = append(out, strings.TrimPrefix(string(key), mediumPrefix)+"="+string(value))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if got, err := r.Get([]byte(mediumPrefix + "none")); got != nil || err != nil {
		t.Errorf("a key that is not there: got %q, error %v", got, err)
	}
	return strings.Join(out, " ")
}

var errInjected = errors.New("injected")

// failing fails one commit of a medium, before or after it took effect.
type failing struct {
	offsets.Medium
	commits int // until it fails; below 0 it has failed
	after   bool
}

func (f *failing) Update(fn func(offsets.Tx) error) error {
	f.commits--
	switch {
	case f.commits != -1:
		return f.Medium.Update(fn)
	case f.after:
		return errors.Join(f.Medium.Update(fn), errInjected)
	default:
		return f.Medium.Update(func(tx offsets.Tx) error { return errors.Join(fn(tx), errInjected) })
	}
}

// gated lets each commit begin only when it is told so, and counts them.
type gated struct {
	offsets.Medium
	begin   chan struct{}
	commits int
}

func (g *gated) Update(fn func(offsets.Tx) error) error {
	<-g.begin
	g.commits++
	return g.Medium.Update(fn)
}

// counting counts the commits that took place.
type counting struct {
	offsets.Medium
	commits int
}

func (c *counting) Update(fn func(offsets.Tx) error) error {
	err := c.Medium.Update(fn)
	if err == nil {
		c.commits++
	}
	return err
}
