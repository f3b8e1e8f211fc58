// Package document reads the JSON and YAML files that policies see: their data, and facts. One
// content has one meaning, and what could mean two things is an error, since a rule that reads what
// its author did not write is undefined, and denies nothing:
//
//   - A file is UTF-8 with one document, in which no key stands twice.
//   - A file that ends in .json is JSON, and no YAML.
//   - Keys are texts. Numbers keep all their digits, and are no larger than a float64 can be.
//   - In YAML yes, no, on and off want quotes, or true and false: some programs write them for
//     these, and to others they are texts. Moments are the texts that stand there. Tags of the
//     user's own are not read.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"unicode/utf8"
)

// The bounds of a document.
const (
	depthMax   = 200
	aliasedMax = 1 << 20 // values that the aliases of YAML stand for
)

// Place is where something stands. Both count from 1; 0 is not known.
type Place struct{ Line, Column int }

// At is the place of the byte at offset in content, whose columns are characters.
func At(content []byte, offset int) Place {
	before := content[:max(0, min(offset, len(content)))]
	return Place{1 + bytes.Count(before, []byte("\n")),
		1 + utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])}
}

// End is the place behind all of content but the white space at its end.
func End(content []byte) Place {
	return At(content, len(bytes.TrimRight(content, " \t\r\n")))
}

// Error is what is wrong with a file.
type Error struct {
	Place Place
	Text  string // what is wrong
	Hint  string // what would be right; may be empty
}

// Error gives "line:column: text; hint", as far as they are known.
func (e *Error) Error() string { return e.In("") }

// In gives the error of the file at path: "path:line:column: text; hint".
func (e *Error) In(path string) string {
	text := path
	for _, n := range []int{e.Place.Line, e.Place.Column} {
		if n > 0 {
			text += ":" + strconv.Itoa(n)
		}
	}
	text += ": " + e.Text
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// Document is what a file holds.
type Document struct {
	// Value is made of what encoding/json decodes into, with numbers as json.Number.
	Value any
	// Keys is where the keys of Value stand, if that is an object.
	Keys map[string]Place
}

// Decode reads the content of a file, whose path says by its extension what it is: .json, or
// anything else for YAML. The error is an *Error.
func Decode(path string, content []byte) (*Document, error) {
	content = bytes.TrimPrefix(content, []byte("\uFEFF"))
	if filepath.Ext(path) == ".json" {
		return decodeJSON(content)
	}
	return decodeYAML(content)
}

func decodeJSON(content []byte) (*Document, error) {
	r := &jsonReader{Decoder: json.NewDecoder(bytes.NewReader(content)), content: content,
		keys: map[string]Place{}}
	r.UseNumber()
	v, err := r.value(0)
	if err == nil {
		if _, more := r.Token(); more != io.EOF {
			err = errors.New("more than one JSON value")
		}
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, &Error{Place: End(content), Text: "the JSON ends too early"}
	} else {
		err = fmt.Errorf("no JSON: %w", err)
	}
	place := At(content, r.begin)
	if errors.As(err, new(*json.SyntaxError)) {
		place = NoJSON(content)
	}
	if err == nil && !utf8.Valid(content) {
		err, place = errors.New("no JSON: it is not UTF-8"), At(content, firstInvalid(content))
	}
	if err != nil {
		return nil, &Error{Place: place, Text: err.Error()}
	}
	return &Document{v, r.keys}, nil
}

// tooEarly is how encoding/json says that a text ends too early.
const tooEarly = "unexpected end of JSON input"

// NoJSON is where content stops being JSON: its end where it ends too early.
func NoJSON(content []byte) Place {
	// The offsets of a json.Decoder's own errors do not count what its tokens have passed over.
	var wrong *json.SyntaxError
	var v json.RawMessage
	if errors.As(json.Unmarshal(content, &v), &wrong) && wrong.Error() != tooEarly {
		return At(content, int(wrong.Offset)-1)
	}
	return End(content)
}

// firstInvalid is the offset of the first byte that is no UTF-8.
func firstInvalid(content []byte) int {
	at := 0
	for at < len(content) {
		r, n := utf8.DecodeRune(content[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	return at
}

// jsonReader reads one value. encoding/json would let the last one of equal keys win.
type jsonReader struct {
	*json.Decoder
	content []byte
	keys    map[string]Place // of the outermost object
	begin   int              // where the token that was read last begins

	// How far places were asked for, the lines up to there, and where the last one begins.
	passed, line, begun int
}

// here is the place behind what was read last. It is found from the one before, since a document
// may have very many keys.
func (r *jsonReader) here() Place {
	end := int(r.InputOffset())
	passed := r.content[r.passed:end]
	r.line += bytes.Count(passed, []byte("\n"))
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		r.begun = r.passed + i + 1
	}
	r.passed = end
	return Place{1 + r.line, 1 + end - r.begun}
}

// Token reads the next one, and notes where it begins.
func (r *jsonReader) Token() (json.Token, error) {
	before := int(r.InputOffset())
	rest := bytes.TrimLeft(r.content[before:], " \t\r\n,:")
	r.begin = len(r.content) - len(rest)
	return r.Decoder.Token()
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > depthMax {
		return nil, fmt.Errorf("it nests deeper than %d", depthMax)
	}
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch token := token.(type) {
	case json.Number:
		return number(token.String())
	case json.Delim:
		if token == '[' {
			return r.list(depth)
		}
		return r.object(depth)
	}
	return token, nil
}

func (r *jsonReader) list(depth int) (any, error) {
	list := []any{}
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.Token()
	return list, err
}

func (r *jsonReader) object(depth int) (any, error) {
	object := map[string]any{}
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // the decoder lets nothing else pass
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("the key %q stands twice", name)
		}
		if depth == 0 {
			place := r.here()
			place.Column = max(place.Column-len(name)-len(`""`), 1) // it has just been read
			r.keys[name] = place
		}
		if object[name], err = r.value(depth + 1); err != nil {
			return nil, err
		}
	}
	_, err := r.Token()
	return object, err
}

// number refuses what is too large for other programs to compute with, as 1e400.
func number(text string) (json.Number, error) {
	if _, err := strconv.ParseFloat(text, 64); err != nil {
		return "", fmt.Errorf("the number %.40s is too large", text)
	}
	return json.Number(text), nil
}
