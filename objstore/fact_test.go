package objstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files in testdata")

// golden compares data with the file, whose bytes must stay readable by every later tierd.
func golden(t *testing.T, name string, data []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", path, data, want)
	}
	if !json.Valid(data) {
		t.Errorf("%s: is not JSON", path)
	}
}

func TestGoldenEntries(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]tier.Fact{
		"entry-add.json":   add(5),
		"entry-hole.json":  hole(6, 600, 700),
		"entry-start.json": start(7, 500),
		"entry-clip.json":  clip(8, 650),
		"entry-open.json":  opened(9, 700),
	} {
		data, err := encodeEntry(ledger, orders, attempt(uint64(f.Position)), f)
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, data)
		k := Key{Kind: KeyEntry, Log: orders, Position: f.Position,
			Attempt: attempt(uint64(f.Position))}
		if got, err := decodeEntry(data, ledger, k); !reflect.DeepEqual(got, f) || err != nil {
			t.Errorf("%s: decodes as %+v, %v", name, got, err)
		}
	}
}

func TestGoldenCheckpoint(t *testing.T) {
	t.Parallel()
	facts := []tier.Fact{add(64), hole(66, 6500, 6600), add(127)}
	data, err := encodeCheckpoint(ledger, orders, 1, 1, facts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "checkpoint.json", data)
	k := Key{Kind: KeyCheckpoint, Log: orders, Level: 1, Block: 1}
	if got, err := decodeCheckpoint(data, ledger, k); !reflect.DeepEqual(got, facts) || err != nil {
		t.Errorf("decodes as %+v, %v", got, err)
	}
}

// Whether a list is nil or empty, and in which order facts come, is no part of what they say.
func TestEqualFactsHaveEqualBytes(t *testing.T) {
	t.Parallel()
	encode := func(facts ...tier.Fact) []byte {
		data, err := encodeCheckpoint(ledger, orders, 1, 0, facts)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	none, empty := add(1), add(1)
	none.Add.Content.Lineage, empty.Add.Content.Lineage = nil, []tier.EpochStart{}
	if !bytes.Equal(encode(none), encode(empty)) {
		t.Error("no lineage and an empty one give different bytes")
	}
	if none.Add.Content.Lineage != nil {
		t.Error("encoding changed its argument")
	}
	if !bytes.Equal(encode(add(1), hole(2, 1, 2), add(3)), encode(add(3), add(1), hole(2, 1, 2))) {
		t.Error("the order of facts gives different bytes")
	}
	data, err := encodeEntry(ledger, orders, attempt(1), empty)
	if err != nil {
		t.Fatal(err)
	}
	k := Key{Kind: KeyEntry, Log: orders, Position: 1, Attempt: attempt(1)}
	if got, err := decodeEntry(data, ledger, k); !reflect.DeepEqual(got, none) || err != nil {
		t.Errorf("decodes as %+v, %v", got, err)
	}
}

// No flipped bit and no cut goes unnoticed.
func TestEveryDamageIsNoticed(t *testing.T) {
	t.Parallel()
	data, err := encodeEntry(ledger, orders, attempt(9), hole(9, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	k := Key{Kind: KeyEntry, Log: orders, Position: 9, Attempt: attempt(9)}
	if _, err := decodeEntry(data, ledger, k); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for bit := range 8 {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << bit
			_, err := decodeEntry(bad, ledger, k)
			// A flipped digit of the version is not told from a newer version; it is refused.
			if !errors.Is(err, tier.ErrDamaged) && !errors.Is(err, tier.ErrNewer) {
				t.Fatalf("bit %d of byte %d flipped: %v", bit, i, err)
			}
		}
		if _, err := decodeEntry(data[:i], ledger, k); !errors.Is(err, tier.ErrDamaged) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	for _, more := range []string{"x", "\n", string(data)} {
		if _, err := decodeEntry(append(bytes.Clone(data), more...), ledger, k); err == nil {
			t.Errorf("%d more bytes: no error", len(more))
		}
	}
}

// resealed replaces old by new in a document and makes its checksum right again.
func resealed(t *testing.T, data []byte, old, new string) []byte {
	t.Helper()
	text, err := checkSeal(data)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.Replace(text, []byte(old), []byte(new), 1)
	if bytes.Equal(changed, text) {
		t.Fatalf("%q is not in %s", old, text)
	}
	return withSeal(changed)
}

func TestDecodeEntrySaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	data, err := encodeEntry(ledger, orders, attempt(5), add(5))
	if err != nil {
		t.Fatal(err)
	}
	k := Key{Kind: KeyEntry, Log: orders, Position: 5, Attempt: attempt(5)}
	tests := []struct {
		name, old, new string
		want           error
		text           string
	}{
		{"newer", `"version":1`, `"version":2`, tier.ErrNewer, `version 2 of "entry", newer than 1`},
		{"newer, otherwise unknown", `"version":1`, `"version":7,"codec":"x"`, tier.ErrNewer, "newer"},
		{"version 0", `"version":1`, `"version":0`, tier.ErrDamaged, `version 0 of "entry"`},
		{"other kind", `"kind":"entry"`, `"kind":"owner"`, tier.ErrDamaged,
			`version 1 of "owner": want 1 of "entry"`},
		{"other ledger", ledger, "fedcba9876543210", tier.ErrDamaged, `is of ledger "fedcba`},
		{"other log", `"orders/0"`, `"orders/1"`, tier.ErrDamaged, `log "orders/1"`},
		{"other position", `"position":5,"epoch"`, `"position":6,"epoch"`, tier.ErrDamaged, "position 6"},
		{"other attempt", attempt(5).String(), attempt(6).String(), tier.ErrDamaged, "attempt 0000"},
		{"unknown member", `"fact"`, `"truth":1,"fact"`, tier.ErrDamaged, `unknown field "truth"`},
		{"second value", `{"version"`, `{}{"version"`, tier.ErrDamaged, "version 0"},
		{"no fact", `"add":{`, `"subtract":{`, tier.ErrDamaged, "unknown field"},
		{"empty range", `"range":{"base":500,"next":600}`, `"range":{"base":500,"next":500}`,
			tier.ErrDamaged, "[500, 500), which is no range"},
		{"path in a name", `"name":"00000000000000000500.log"`, `"name":"../../x.log"`,
			tier.ErrDamaged, "slash"},
		{"number too large", `"copied":600`, `"copied":6000000000000000000000`,
			tier.ErrDamaged, "copied"},
	}
	for _, test := range tests {
		bad := resealed(t, data, test.old, test.new)
		_, err := decodeEntry(bad, ledger, k)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: error %v, want %q (%v)", test.name, err, test.text, test.want)
		}
	}
	inner := resealed(t, data, `"add":{"attempt":"`+attempt(5).String(),
		`"add":{"attempt":"`+attempt(6).String())
	if _, err := decodeEntry(inner, ledger, k); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("copy of another attempt: %v", err)
	}
	// A hole names neither of the two a second time.
	data, err = encodeEntry(ledger, orders, attempt(5), hole(5, 1, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []Key{
		{Kind: KeyEntry, Log: orders, Position: 6, Attempt: attempt(5)},
		{Kind: KeyEntry, Log: orders, Position: 5, Attempt: attempt(6)},
	} {
		if _, err := decodeEntry(data, ledger, other); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("hole at another place: %v", err)
		}
	}
	two := withSeal([]byte(`{"version":1,"kind":"entry","ledger":"x"}{"a":1`))
	if err := unseal(two, kindEntry, &entry{}); !errors.Is(err, tier.ErrDamaged) {
		t.Errorf("two JSON values: %v", err)
	}
}

// A document of a newer version need not be sealed as this version does it.
func TestNewerWithoutOurSeal(t *testing.T) {
	t.Parallel()
	data := []byte(`{"version":2,"kind":"entry","body":"` + strings.Repeat("x", 100) + `"}`)
	k := Key{Kind: KeyEntry, Log: orders}
	if _, err := decodeEntry(data, ledger, k); !errors.Is(err, tier.ErrNewer) {
		t.Errorf("error %v, want ErrNewer", err)
	}
}

func TestEncodeRefusesWhatDecodeWould(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*tier.Fact){
		"nothing set":     func(f *tier.Fact) { f.Add = nil },
		"two set":         func(f *tier.Fact) { f.Start = new(tier.Offset) },
		"other position":  func(f *tier.Fact) { f.Add.Position++ },
		"other epoch":     func(f *tier.Fact) { f.Add.Epoch++ },
		"other attempt":   func(f *tier.Fact) { f.Add.Attempt[0]++ },
		"empty range":     func(f *tier.Fact) { f.Add.Content.Range.Next = f.Add.Content.Range.Base },
		"negative base":   func(f *tier.Fact) { f.Add.Content.Range.Base = -1 },
		"no files":        func(f *tier.Fact) { f.Add.Content.Files = nil },
		"bad name":        func(f *tier.Fact) { f.Add.Content.Files[0].Name = "a/b" },
		"same name":       func(f *tier.Fact) { f.Add.Content.Files[1] = f.Add.Content.Files[0] },
		"negative size":   func(f *tier.Fact) { f.Add.Content.Files[0].Size = -1 },
		"negative copied": func(f *tier.Fact) { f.Copied = -1 },
		"empty hole":      func(f *tier.Fact) { f.Add, f.Hole = nil, &tier.Hole{} },
		"negative start":  func(f *tier.Fact) { n := tier.Offset(-1); f.Add, f.Start = nil, &n },
		"negative open":   func(f *tier.Fact) { n := tier.Offset(-1); f.Add, f.Open = nil, &n },
		"negative clip":   func(f *tier.Fact) { n := tier.Offset(-1); f.Add, f.Clip = nil, &n },
		"too large": func(f *tier.Fact) {
			f.Add.Content.Lineage = make([]tier.EpochStart, entryBytesMax/len(`{"epoch":0,"start":0},`)+1)
		},
	}
	for name, change := range tests {
		f := add(5)
		change(&f)
		if _, err := encodeEntry(ledger, orders, attempt(5), f); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, facts := range map[string][]tier.Fact{
		"below the block": {add(63)},
		"above the block": {add(128)},
		"twice":           {add(64), add(64)},
		"unsound":         {{Position: 64}},
	} {
		if _, err := encodeCheckpoint(ledger, orders, 1, 1, facts); err == nil {
			t.Errorf("checkpoint with a fact %s: no error", name)
		}
	}
	for _, level := range []uint8{0, tier.CheckpointLevelMax + 1, 255} {
		if _, err := encodeCheckpoint(ledger, orders, level, 0, nil); err == nil {
			t.Errorf("checkpoint of level %d: no error", level)
		}
	}
}

func TestDecodeCheckpointSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	data, err := encodeCheckpoint(ledger, orders, 1, 1, []tier.Fact{hole(64, 1, 2), hole(65, 2, 3)})
	if err != nil {
		t.Fatal(err)
	}
	k := Key{Kind: KeyCheckpoint, Log: orders, Level: 1, Block: 1}
	tests := map[string]struct{ old, new string }{
		"other block":      {`"block":1`, `"block":2`},
		"other level":      {`"level":1`, `"level":2`},
		"other log":        {`"orders/0"`, `"orders/1"`},
		"order of facts":   {`"position":64`, `"position":66`},
		"outside":          {`"position":65`, `"position":128`},
		"unsound":          {`"hole":{"base":1,"next":2`, `"hole":{"base":1,"next":1`},
		"kind":             {`"kind":"checkpoint"`, `"kind":"entry"`},
		"level of a block": {`"level":1`, `"level":300`},
	}
	for name, test := range tests {
		bad := resealed(t, data, test.old, test.new)
		if _, err := decodeCheckpoint(bad, ledger, k); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
		}
	}
}

// Block 0 of one level would also do as block 0 of the next, with most of its facts missing, and a
// sound block as another one.
func TestCheckpointOfAnotherPlace(t *testing.T) {
	t.Parallel()
	data, err := encodeCheckpoint(ledger, orders, 1, 0, []tier.Fact{hole(1, 1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]Key{
		"another level": {Kind: KeyCheckpoint, Log: orders, Level: 2},
		"another block": {Kind: KeyCheckpoint, Log: orders, Level: 1, Block: 1},
	} {
		if _, err := decodeCheckpoint(data, ledger, k); !errors.Is(err, tier.ErrDamaged) {
			t.Errorf("%s: error %v, want ErrDamaged", name, err)
		}
	}
}

// The highest position lies in the highest block of each level.
func TestBlocksAtTheEnd(t *testing.T) {
	t.Parallel()
	last := hole(^tier.Position(0), 1, 2)
	for level := uint8(1); level <= tier.CheckpointLevelMax; level++ {
		block := blockOf(level, last.Position)
		if _, err := encodeCheckpoint(ledger, orders, level, block, []tier.Fact{last}); err != nil {
			t.Errorf("level %d: %v", level, err)
		}
		if err := checkBlock(level, block+1); err == nil {
			t.Errorf("level %d: a block beyond the last: no error", level)
		}
	}
}

func FuzzEntry(f *testing.F) {
	for _, fact := range []tier.Fact{add(5), hole(6, 1, 2), start(7, 3), clip(8, 4)} {
		data, err := encodeEntry(ledger, orders, attempt(uint64(fact.Position)), fact)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)-sealBytes])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		// As it came, and with a checksum that is right, behind which the rest is tried.
		for _, data := range [][]byte{data, withSeal(bytes.Clone(data))} {
			var peek entry
			_ = unseal(data, kindEntry, &peek)
			k := Key{Kind: KeyEntry, Log: orders, Position: peek.Fact.Position, Attempt: peek.Attempt}
			fact, err := decodeEntry(data, ledger, k)
			if err != nil {
				continue
			}
			again, err := encodeEntry(ledger, orders, k.Attempt, fact)
			if err != nil {
				t.Fatalf("%s\ndecodes, but does not encode: %v", data, err)
			}
			if got, err := decodeEntry(again, ledger, k); !reflect.DeepEqual(got, fact) || err != nil {
				t.Fatalf("%s\nbecomes %+v, %v", data, got, err)
			}
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	for _, facts := range [][]tier.Fact{nil, {add(64)}, {add(64), hole(65, 1, 2), clip(127, 3)}} {
		data, err := encodeCheckpoint(ledger, orders, 1, 1, facts)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)-sealBytes])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range [][]byte{data, withSeal(bytes.Clone(data))} {
			var peek checkpoint
			_ = unseal(data, kindCheckpoint, &peek)
			k := Key{Kind: KeyCheckpoint, Log: orders, Level: peek.Level, Block: peek.Block}
			facts, err := decodeCheckpoint(data, ledger, k)
			if err != nil {
				continue
			}
			if !slices.IsSortedFunc(facts, byPosition) {
				t.Fatalf("%s\ndecodes out of order", data)
			}
			again, err := encodeCheckpoint(ledger, orders, k.Level, k.Block, facts)
			if err != nil {
				t.Fatalf("%s\ndecodes, but does not encode: %v", data, err)
			}
			got, err := decodeCheckpoint(again, ledger, k)
			if len(got) != len(facts) || len(got) > 0 && !reflect.DeepEqual(got, facts) || err != nil {
				t.Fatalf("%s\nbecomes %+v, %v", data, got, err)
			}
		}
	})
}
