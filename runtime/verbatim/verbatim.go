// Package verbatim takes apart JSON that is just as tierd writes it: it knows what comes where, and
// needs a small part of the time that encoding/json does. Of any other text it says that it is not
// such, and nothing else; that is then for encoding/json, which has the last word on what is sound.
package verbatim

import (
	"encoding/hex"
	"strconv"
)

// Text is a text that is being taken apart from its beginning on. What is taken after something was
// not as expected means nothing.
type Text struct {
	rest   []byte
	strays bool
}

// New begins a text, which is not changed.
func New(text []byte) *Text { return &Text{rest: text} }

// End reports whether everything was as it was taken, and nothing is left.
func (t *Text) End() bool { return !t.strays && len(t.rest) == 0 }

// Refuse makes the text one that is not as expected.
func (t *Text) Refuse() { t.strays = true }

// Rest takes all but the last n bytes; nil where there are not so many.
func (t *Text) Rest(n int) []byte {
	if len(t.rest) < n {
		t.strays = true
		return nil
	}
	out := t.rest[:len(t.rest)-n]
	t.rest = t.rest[len(t.rest)-n:]
	return out
}

// Taken takes what comes next, if it is that.
func (t *Text) Taken(next string) bool {
	if len(t.rest) < len(next) || string(t.rest[:len(next)]) != next {
		return false
	}
	t.rest = t.rest[len(next):]
	return true
}

// Take takes what has to come next.
func (t *Text) Take(next string) {
	if !t.Taken(next) {
		t.strays = true
	}
}

// deepMax bounds how deep values lie in each other.
const deepMax = 64

// Compact reports whether the text is one JSON value without blanks, and with strings that are all
// of printable ASCII and not escaped.
func Compact(text []byte) bool {
	t := Text{rest: text}
	t.value(deepMax)
	return t.End()
}

// value takes a value.
func (t *Text) value(deep int) {
	switch {
	case deep == 0:
		t.strays = true
	case t.Taken(`"`):
		t.plain()
	case t.Taken(`{`):
		for more := !t.Taken(`}`); more && !t.strays; more = t.goesOn(`}`) {
			t.Take(`"`)
			t.plain()
			t.Take(`:`)
			t.value(deep - 1)
		}
	case t.Taken(`[`):
		for more := !t.Taken(`]`); more && !t.strays; more = t.goesOn(`]`) {
			t.value(deep - 1)
		}
	case t.Taken(`true`), t.Taken(`false`), t.Taken(`null`):
	default:
		t.number()
	}
}

// goesOn takes what comes after an element, and reports whether that is another one.
func (t *Text) goesOn(end string) bool {
	if t.Taken(`,`) {
		return true
	}
	t.Take(end)
	return false
}

// number takes any number.
func (t *Text) number() {
	t.Taken(`-`)
	if !t.Taken(`0`) {
		t.digits()
	}
	if t.Taken(`.`) {
		t.anyDigits()
	}
	if t.Taken(`e`) || t.Taken(`E`) {
		_ = t.Taken(`-`) || t.Taken(`+`)
		t.anyDigits()
	}
}

// String takes the rest of a string, with its quote. One that is escaped anywhere, or not all of
// printable ASCII, is not as expected.
func (t *Text) String() string { return string(t.plain()) }

// plain is String without a copy.
func (t *Text) plain() []byte {
	for i, c := range t.rest {
		switch {
		case c == '"':
			s := t.rest[:i]
			t.rest = t.rest[i+1:]
			return s
		case c == '\\' || c < ' ' || c > '~':
			t.strays = true
			return nil
		}
	}
	t.strays = true
	return nil
}

// Hex takes as many hexadecimal digits as fill to.
func (t *Text) Hex(to []byte) {
	n := hex.EncodedLen(len(to))
	if len(t.rest) < n {
		t.strays = true
		return
	}
	if _, err := hex.Decode(to, t.rest[:n]); err != nil {
		t.strays = true
	}
	t.rest = t.rest[n:]
}

// digits takes a number's digits.
func (t *Text) digits() string {
	digits := t.anyDigits()
	if len(digits) > 1 && digits[0] == '0' {
		t.strays = true
	}
	return string(digits)
}

// anyDigits takes digits, at least one.
func (t *Text) anyDigits() []byte {
	n := 0
	for n < len(t.rest) && '0' <= t.rest[n] && t.rest[n] <= '9' {
		n++
	}
	digits := t.rest[:n]
	t.rest = t.rest[n:]
	t.strays = t.strays || n == 0
	return digits
}

// Count takes a number that is not negative, and has so many bits at most.
func (t *Text) Count(bits int) uint64 {
	n, err := strconv.ParseUint(t.digits(), 10, bits)
	if err != nil {
		t.strays = true
	}
	return n
}

// Number takes a whole number of so many bits at most.
func (t *Text) Number(bits int) int64 {
	sign := ""
	if t.Taken("-") {
		sign = "-"
	}
	n, err := strconv.ParseInt(sign+t.digits(), 10, bits)
	if err != nil {
		t.strays = true
	}
	return n
}
