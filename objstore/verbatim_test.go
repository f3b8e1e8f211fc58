package objstore

import (
	"reflect"
	"testing"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/verbatim/verbatimtest"
)

// TestReadCheckpointVerbatim: a checkpoint likewise.
func TestReadCheckpointVerbatim(t *testing.T) {
	t.Parallel()
	data, err := encodeCheckpoint(ledger, orders, 1, 0, []tier.Fact{add(1), hole(2, 1, 2), clip(3, 4)})
	if err != nil {
		t.Fatal(err)
	}
	text := data[:len(data)-sealBytes]
	check := func(text []byte) bool {
		var got, want checkpoint
		if !got.readVerbatim(text) {
			return false
		}
		if err := decode(text, &want); err != nil {
			t.Errorf("%s\nwas read, and is no checkpoint: %v", text, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		return true
	}
	none := []byte(`{"version":1,"kind":"checkpoint","ledger":"l","log":"a/0",` +
		`"level":1,"block":0,"facts":[]`)
	for _, sound := range [][]byte{text, none} {
		if !check(sound) {
			t.Errorf("was not read: %s", sound)
		}
		for other := range verbatimtest.Near(sound) {
			check(other)
		}
	}
}

// TestReadVerbatim: an entry is read as encoding/json reads it, or left to that, whatever is wrong
// with it; and what tierd writes of most segments is not left to it.
func TestReadVerbatim(t *testing.T) {
	t.Parallel()
	of := func(f tier.Fact) []byte {
		id := attempt(uint64(f.Position))
		if f.Add != nil {
			id = f.Add.Attempt
		}
		data, err := encodeEntry(ledger, orders, id, f)
		if err != nil {
			t.Fatal(err)
		}
		return data[:len(data)-sealBytes]
	}
	check := func(text []byte) bool {
		var got, want entry
		if !got.readVerbatim(text) {
			if !reflect.DeepEqual(got, entry{}) {
				t.Errorf("%s\nwas not read, and left %+v", text, got)
			}
			return false
		}
		if err := decode(text, &want); err != nil {
			t.Errorf("%s\nwas read, and is no entry: %v", text, err)
		} else if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
		return true
	}
	led := add(5)
	led.Add.Content.Lineage = []tier.EpochStart{{Epoch: 3, Start: 50}, {Epoch: 7, Start: 55}}
	led.Incarnation = "abc"
	named := add(5)
	named.Add.Content.Files[0].Name = "é.log"
	for name, c := range map[string]struct {
		fact tier.Fact
		want bool
	}{
		"a copy": {add(5), true}, "with lineage": {led, true}, "a start": {start(7, 3), true},
		"a clip": {clip(8, 4), true}, "a hole": {hole(6, 1, 2), true}, "a name": {named, false},
	} {
		text := of(c.fact)
		if got := check(text); got != c.want {
			t.Errorf("%s: read is %t, want %t: %s", name, got, c.want, text)
		}
		for other := range verbatimtest.Near(text) {
			check(other)
		}
	}
}
