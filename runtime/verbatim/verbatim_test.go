package verbatim

import "testing"

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
