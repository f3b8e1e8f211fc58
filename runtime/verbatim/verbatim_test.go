package verbatim

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/tierd/tierd/runtime/verbatim/verbatimtest"
)

// TestText: what is not just as expected is noticed, however much was taken before.
func TestText(t *testing.T) {
	t.Parallel()
	var sum [2]byte
	take := func(text string) bool {
		x := New([]byte(text))
		x.Take(`{"n":`)
		n := x.Number(32)
		x.Take(`,"s":"`)
		s := x.String()
		x.Take(`,"h":"`)
		x.Hex(sum[:])
		x.Take(`"`)
		if x.Taken(`,"rest":`) && len(x.Rest(1)) == 0 {
			x.Refuse()
		}
		x.Take(`}`)
		return x.End() && n == -7 && s == "a b" && sum == [2]byte{0xAB, 1}
	}
	for text, want := range map[string]bool{
		`{"n":-7,"s":"a b","h":"ab01"}`:            true,
		`{"n":-7,"s":"a b","h":"ab01","rest":[1]}`: true,
		`{"n":-7,"s":"a b","h":"ab01","rest":}`:    false,
		`{"n":-7,"s":"a b","h":"ab01"} `:           false,
		`{"n":-7, "s":"a b","h":"ab01"}`:           false,
		`{"n":-07,"s":"a b","h":"ab01"}`:           false,
		`{"n":--7,"s":"a b","h":"ab01"}`:           false,
		`{"n":-,"s":"a b","h":"ab01"}`:             false,
		`{"n":-4294967297,"s":"a b","h":"ab01"}`:   false,
		`{"n":-7,"s":"a\u0020b","h":"ab01"}`:       false,
		`{"n":-7,"s":"a b","h":"ab0"}`:             false,
		`{"n":-7,"s":"a b","h":"abxy"}`:            false,
		`{"n":-7,"s":"a b`:                         false,
		``:                                         false,
	} {
		if got := take(text); got != want {
			t.Errorf("%s is as expected: %t, want %t", text, got, want)
		}
	}
}

// TestCompact: what is compact is JSON, and just as encoding/json would write it, whatever else was
// changed in it; and what has nothing escaped is compact.
func TestCompact(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte("["), deepMax+1)
	check := func(text []byte) bool {
		if !Compact(text) {
			return false
		}
		var b bytes.Buffer
		if err := json.Compact(&b, text); err != nil || !bytes.Equal(b.Bytes(), text) {
			t.Errorf("%s is taken for compact JSON: %v", text, err)
		}
		return true
	}
	for text, want := range map[string]bool{
		`{"a":[1,-2.05,3e+7,0,0.1E-9],"":{"b":[]},"c":{},"d":[true,false,null,"x y"]}`: true,
		`7`: true, `"<&>"`: true, `"\n"`: false, `"ä"`: false, `[1, 2]`: false, ``: false, `[1`: false,
		string(deep) + string(bytes.Repeat([]byte("]"), len(deep))): false,
	} {
		if got := check([]byte(text)); got != want {
			t.Errorf("%s is compact: %t, want %t", text, got, want)
		}
		for other := range verbatimtest.Near([]byte(text)) {
			check(other)
		}
	}
}
