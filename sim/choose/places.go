package choose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tierd/tierd/runtime/document"
)

// tokens are those of a JSON text, each with its place.
type tokens struct {
	*json.Decoder
	text  []byte
	begin int // of the token that was read last
}

func (t *tokens) next() (json.Token, error) {
	rest := bytes.TrimLeft(t.text[t.InputOffset():], " \t\r\n,:")
	t.begin = len(t.text) - len(rest)
	return t.Token()
}

// The keys that a scenario and a choice may have.
var (
	scenarioKeys = []string{"format", "version", "seed", "property", "segment", "digest", "layout",
		"medium", "exhaust", "choices"}
	choiceKeys = []string{"label", "of", "pick", "name", "said"}
)

// places is where what a scenario says stands in its file, as offsets.
type places struct {
	text    []byte
	values  map[string]int // of the file's own keys
	choices []int
	problem error // the first key that has no meaning, or stands twice
}

// placesOf finds them in a text that is JSON. It looks at the keys, too, since encoding/json tells
// an unknown one without its place, takes one in other letters, and lets the last of two win.
func placesOf(text []byte) *places {
	p := &places{text: text, values: map[string]int{}}
	t := &tokens{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	first, _ := t.next()
	p.object(t, first, "", scenarioKeys, func(key string, value json.Token) {
		p.values[key] = t.begin
		if key != "choices" || value != json.Delim('[') {
			t.skip(value)
			return
		}
		for t.More() {
			choice, _ := t.next()
			p.choices = append(p.choices, t.begin)
			p.object(t, choice, " of a choice", choiceKeys, func(_ string, value json.Token) {
				t.skip(value)
			})
		}
		_, _ = t.next()
	})
	return p
}

// object visits the values of an object of which the first token was read. of completes "unknown
// key ...".
func (p *places) object(t *tokens, first json.Token, of string, known []string,
	visit func(key string, value json.Token)) {
	if first != json.Delim('{') {
		t.skip(first)
		return
	}
	seen := map[string]bool{}
	for t.More() {
		token, _ := t.next()
		key, _ := token.(string)
		switch at := t.begin; {
		case p.problem != nil:
		case !slices.Contains(known, key):
			p.problem = p.at(at, "unknown key %q%s; the keys here are %s", key, of,
				strings.Join(known, ", "))
		case seen[key]:
			p.problem = p.at(at, "the key %q stands twice; keep one of them", key)
		}
		seen[key] = true
		value, _ := t.next()
		visit(key, value)
	}
	_, _ = t.next()
}

// skip passes over a value of which the first token was read.
func (t *tokens) skip(first json.Token) {
	var err error
	for depth, token := 0, first; err == nil; token, err = t.next() {
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return
		}
	}
}

func (p *places) at(offset int, format string, args ...any) error {
	return &document.Error{Place: document.At(p.text, offset), Text: fmt.Sprintf(format, args...)}
}

// wrong says what is wrong with the value of one of the file's own keys, at its place, or at the
// beginning where the key is missing.
func (p *places) wrong(key, format string, args ...any) error {
	return p.at(p.values[key], format, args...)
}
