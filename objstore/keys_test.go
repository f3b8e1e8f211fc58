package objstore

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierd/tierd/runtime/tier"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"orders":        "orders",
		"a/b":           "a%2Fb",
		"a%2Fb":         "a%252Fb",
		".":             "%2E",
		"..":            "%2E%2E",
		"...":           "%2E.%2E",
		".hidden":       "%2Ehidden",
		"dot.in.middle": "dot.in.middle",
		"end.":          "end%2E",
		"p=1, ä":        "p%3D1%2C%20%C3%A4",
		"under_score-":  "under_score-",
		"":              "",
	}
	for s, want := range tests {
		if got := escape(s); got != want {
			t.Errorf("escape(%q) = %q, want %q", s, got, want)
		}
		if got, err := unescape(want); got != s || err != nil {
			t.Errorf("unescape(%q) = %q, %v; want %q", want, got, err, s)
		}
	}
	for _, e := range []string{"%", "%2", "%2f", "%41", "%GG", "a b", ".x", "x.", "a/b", "ä", "%+1"} {
		if s, err := unescape(e); err == nil {
			t.Errorf("unescape(%q) = %q: no error, though escape never writes it", e, s)
		}
	}
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "orders", "a/b", "%2F", "..", "\x00\xff", "ä."} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		e := escape(s)
		if got, err := unescape(e); got != s || err != nil {
			t.Fatalf("unescape(escape(%q)) = %q, %v", s, got, err)
		}
		if i := strings.IndexFunc(e, func(r rune) bool {
			return r > 0x7e || !plain(byte(r)) && r != '.' && r != '%'
		}); i >= 0 || strings.HasPrefix(e, ".") || strings.HasSuffix(e, ".") {
			t.Fatalf("escape(%q) = %q is not safe everywhere", s, e)
		}
		if s != other && e == escape(other) {
			t.Fatalf("%q and %q both become %q", s, other, e)
		}
		// Whatever unescape accepts is what escape writes.
		if u, err := unescape(s); err == nil && escape(u) != s {
			t.Fatalf("unescape(%q) = %q, whose escape is %q", s, u, escape(u))
		}
	})
}

// logIDs draws valid log ids, from few enough characters that tables and names run into each
// other.
func logIDs() *rapid.Generator[tier.LogID] {
	step := rapid.StringOfN(rapid.RuneFrom([]rune("abB./%25FäM")), 1, 6, -1)
	return rapid.Custom(func(t *rapid.T) tier.LogID {
		table := strings.Join(rapid.SliceOfN(step, 1, 3).Draw(t, "table"), "/")
		name := strings.ReplaceAll(step.Draw(t, "name"), "/", "-")
		return tier.LogID{Table: table, Name: name}
	}).Filter(func(id tier.LogID) bool { return id.Validate() == nil })
}

func offsets() *rapid.Generator[tier.Offset] {
	return rapid.Map(rapid.Int64Range(0, math.MaxInt64), func(n int64) tier.Offset {
		return tier.Offset(n)
	})
}

func parsedKeys() *rapid.Generator[Key] {
	attempts := rapid.Map(rapid.Uint64(), attempt)
	names := rapid.StringOfN(rapid.RuneFrom([]rune("0a.-%ä")), 1, 9, -1).Filter(func(s string) bool {
		return CheckName(s) == nil
	})
	return rapid.Custom(func(t *rapid.T) Key {
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			return Key{Kind: KeyFile, Log: logIDs().Draw(t, "log"),
				Epoch: tier.TierEpoch(rapid.Uint32Min(1).Draw(t, "epoch")),
				Base:  offsets().Draw(t, "base"), Attempt: attempts.Draw(t, "attempt"),
				Name: names.Draw(t, "file")}
		case 1:
			return Key{Kind: KeyEntry, Log: logIDs().Draw(t, "log"),
				Position: tier.Position(rapid.Uint64().Draw(t, "position")),
				Attempt:  attempts.Draw(t, "attempt")}
		case 2:
			level := rapid.Uint8Range(1, tier.CheckpointLevelMax).Draw(t, "level")
			return Key{Kind: KeyCheckpoint, Log: logIDs().Draw(t, "log"), Level: level,
				Block: blockOf(level, tier.Position(rapid.Uint64().Draw(t, "position")))}
		case 3:
			return Key{Kind: KeyOwner}
		default:
			return Key{Kind: KeyProbe, Name: rapid.StringMatching(`[A-Za-z0-9_-]{1,8}`).Draw(t, "nonce")}
		}
	})
}

// Different things have different keys, and a key leads back to what it was made of.
func TestKeysAreInjectiveAndReversible(t *testing.T) {
	t.Parallel()
	k := Keys{ledger}
	rapid.Check(t, func(t *rapid.T) {
		a, b := parsedKeys().Draw(t, "a"), parsedKeys().Draw(t, "b")
		keyA, err := k.format(a)
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		keyB, err := k.format(b)
		if err != nil {
			t.Fatalf("%+v: %v", b, err)
		}
		if (keyA == keyB) != (a == b) {
			t.Fatalf("%+v is %s, %+v is %s", a, keyA, b, keyB)
		}
		if got, err := k.Parse(keyA); got != a || err != nil {
			t.Fatalf("%s is %+v, %v; want %+v", keyA, got, err, a)
		}
		// No object is a directory of another.
		if strings.HasPrefix(keyA, keyB+"/") {
			t.Fatalf("%s lies below the object %s", keyA, keyB)
		}
		if other, err := (Keys{ledger + "x"}).Parse(keyA); err == nil {
			t.Fatalf("%s is also %+v of another ledger", keyA, other)
		}
	})
}

func TestKeysAsDocumented(t *testing.T) {
	t.Parallel()
	k := Keys{"led"}
	o := tier.ObjectKey{Log: tier.LogID{Table: "a/b", Name: "0"}, Epoch: 3, Base: 42,
		Attempt: attempt(255), Name: "00000000000000000042.log"}
	check := func(got string, err error, want string) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	}
	const id = "000000000000000000000000000000ff"
	got, err := k.File(o)
	check(got, err, "led/logs/a%2Fb/0/00000003/00000000000000000042-"+id+"/00000000000000000042.log")
	got, err = k.Attempt(o)
	check(got, err, "led/logs/a%2Fb/0/00000003/00000000000000000042-"+id+"/")
	got, err = k.Entry(o.Log, 0x1f, o.Attempt)
	check(got, err, "led/logs/a%2Fb/0/manifest/000000000000001f-"+id+".json")
	got, err = k.Checkpoint(o.Log, 2, 0xa)
	check(got, err, "led/logs/a%2Fb/0/manifest/L2-000000000000000a.json")
	got, err = k.Probe("n-1")
	check(got, err, "led/probe/n-1")
	check(k.Owner(), nil, "led/owner.json")
}

func TestParseRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	k := Keys{"led"}
	const id = "000000000000000000000000000000ff"
	for _, key := range []string{
		"", "led", "led/", "led/owner", "other/owner.json", "led/probe/", "led/probe/a.b",
		"led/logs/t/n", "led/logs/t/n/manifest/", "led/logs/t/n/manifest/x.json",
		"led/logs/t/n/manifest/000000000000001f-" + id, // no .json
		"led/logs/t/n/manifest/1f-" + id + ".json",
		"led/logs/t/n/manifest/000000000000001F-" + id + ".json",
		"led/logs/t/n/manifest/L3-0000000000000000.json",
		"led/logs/t/n/manifest/L0-0000000000000000.json",
		"led/logs/t/n/manifest/L2-1000000000000000.json", // beyond the last position
		"led/logs/t/n/manifest/L01-0000000000000000.json",
		"led/logs/t/n/00000001/00000000000000000042-" + id + "/",
		"led/logs/t/n/00000001/00000000000000000042-" + id + "/a/b",
		"led/logs/t/n/00000000/00000000000000000042-" + id + "/f",
		"led/logs/t/n/1/00000000000000000042-" + id + "/f",
		"led/logs/t/n/00000001/-0000000000000000042-" + id + "/f",
		"led/logs/t/n/00000001/00000000000000000042-" + id + "00/f",
		"led/logs/t%2fu/n/00000001/00000000000000000042-" + id + "/f",
		"led/logs//n/00000001/00000000000000000042-" + id + "/f",
		"led/files/t/n/00000001/00000000000000000042-" + id + "/f",
	} {
		if p, err := k.Parse(key); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %+v, %v; want ErrForeign", key, p, err)
		}
	}
}

func TestWhatCannotBeInAKey(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "a/b", "ä", ".", strings.Repeat("x", 65)} {
		if _, err := NewKeys(id); err == nil {
			t.Errorf("ledger id %q: no error", id)
		}
		if _, err := (Keys{ledger}).Probe(id); err == nil {
			t.Errorf("nonce %q: no error", id)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "a\n", "a\x7f", "a.", "\xff",
		strings.Repeat("x", 256)} {
		o := file(0, name)
		if _, err := (Keys{ledger}).File(o); err == nil {
			t.Errorf("file name %q: no error", name)
		}
	}
	// The longest topic name that Kafka allows fits; an escaped byte takes three.
	if err := CheckLog(tier.LogID{Table: strings.Repeat("t", 249), Name: "0"}); err != nil {
		t.Error(err)
	}
	for _, id := range []tier.LogID{{}, {Table: "..", Name: "0"}, {Table: "t", Name: "a/b"},
		{Table: strings.Repeat("/ä", 40)[1:], Name: "0"}, {Table: "t", Name: strings.Repeat("n", 256)}} {
		if err := CheckLog(id); err == nil {
			t.Errorf("log id %q: no error", id)
		}
	}
	bad := file(-1, "f")
	if _, err := (Keys{ledger}).File(bad); err == nil {
		t.Error("a negative base offset: no error")
	}
	bad = file(0, "f")
	bad.Epoch = 0
	if _, err := (Keys{ledger}).File(bad); err == nil {
		t.Error("tier epoch 0: no error")
	}
}

// The longest key that can be made leaves room for a prefix in every store.
func TestLongestKey(t *testing.T) {
	t.Parallel()
	k, err := NewKeys(strings.Repeat("l", 64))
	if err != nil {
		t.Fatal(err)
	}
	key, err := k.File(tier.ObjectKey{
		Log:   tier.LogID{Table: strings.Repeat("t", 255), Name: strings.Repeat("n", 255)},
		Epoch: math.MaxUint32, Base: math.MaxInt64, Name: strings.Repeat("f", 255)})
	if err != nil || len(key) != 902 {
		t.Errorf("%d bytes, %v; want 902, as documented", len(key), err)
	}
}
