package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// read gives the JSON of a document, or its error.
func read(path, content string) string {
	doc, err := Decode(path, []byte(content))
	if err != nil {
		return err.(*Error).In(path)
	}
	text, err := json.Marshal(doc.Value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ content, want string }{
		{` {"a": [1, -2.50, 1e3, "x\/\ud83d\ude00", true, null, {}]}` + "\r\n",
			`{"a":[1,-2.50,1e3,"x/😀",true,null,{}]}`},
		{"\uFEFF7", "7"},
		{"{\n\t\"a\":\t123456789012345678901234567890\n}", `{"a":123456789012345678901234567890}`},
		{"", "f.json:1:1: the JSON ends too early"},
		{"{\"a\": 1,\n\"a\": 2}", `f.json:2:1: no JSON: the key "a" stands twice`},
		{"{\"a\": {\n\"b\": 1, \"b\": 2}}", `f.json:2:9: no JSON: the key "b" stands twice`},
		{"[1,\n1e309]", "f.json:2:1: no JSON: the number 1e309 is too large"},
		{"[1,\n" + strings.Repeat("9", 400) + "]", "f.json:2:1: no JSON: the number " +
			strings.Repeat("9", 40) + " is too large"},
		{"1\n2", "f.json:2:1: more than one JSON value"},
		{"{\n\"a\": \"\xff\"}", "f.json:2:7: no JSON: it is not UTF-8"},
		{"\xff\xfe1\x00", "f.json:1:1: no JSON: invalid character 'ÿ' looking for beginning of value"},
		{"a: 1", "f.json:1:1: no JSON: invalid character 'a' looking for beginning of value"},
		{"NaN", "f.json:1:1: no JSON: invalid character 'N' looking for beginning of value"},
		{strings.Repeat("[", 300), "f.json:1:201: no JSON: it nests deeper than 200"},
	} {
		if got := read("f.json", c.content); got != c.want {
			t.Errorf("%.60q:\n got %s\nwant %s", c.content, got, c.want)
		}
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	const tab = "a tab stands here, and YAML is indented by spaces alone"
	const quotes = "; write true or false, or quotes"
	for _, c := range []struct{ content, want string }{
		{"a: [1, -2.50, +7, 1e3, x, 'yes', true, False, ~, {}, y, n]",
			`{"a":[1,-2.50,7,1e3,"x","yes",true,false,null,{},"y","n"]}`},
		{"a: [0x1F, 1_000, 012, 0o12, .5, !!str 5, !!float 5, 1:30, -]",
			`{"a":[31,1000,10,10,0.5,"5",5,"1:30","-"]}`},
		{"a: [2026-01-01, 2026-01-01 10:00:00, \"2026-01-01\"]",
			`{"a":["2026-01-01","2026-01-01 10:00:00","2026-01-01"]}`},
		{"a: 123456789012345678901234567890\nb: 0.12345678901234567890",
			`{"a":123456789012345678901234567890,"b":0.12345678901234567890}`},
		{"a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a\nd: {<<: [{x: 4}, *a]}",
			`{"a":{"x":1,"y":2},"b":{"x":1,"y":3},"c":{"x":1,"y":2},"d":{"x":4,"y":2}}`},
		{"- |\n  yes\n- >-\n  1e400\n", `["yes\n","1e400"]`},
		{"\uFEFFa: 1\r\n", `{"a":1}`},
		{"a: yes", "f.yaml:1:4: yes is a truth value to some programs, and a text to others" + quotes},
		{"a:\n- x\n- NO", "f.yaml:3:3: NO is a truth value to some programs, and a text to others" +
			quotes},
		{"a: 1e400", "f.yaml:1:4: the number 1e400 is too large; write it in quotes if it is a text"},
		{"a: 1_0e400", "f.yaml:1:4: the number 1_0e400 is too large; write it in quotes if it is a text"},
		{"a: [.inf]", "f.yaml:1:5: .inf is no number in JSON; write it in quotes"},
		{"a: {1: x}", "f.yaml:1:5: a key that is no text; write it in quotes"},
		{"a: {~: x}", "f.yaml:1:5: a key that is no text; write it in quotes"},
		{"a: {[1]: x}", "f.yaml:1:5: a key that is no text; write it in quotes"},
		{"2026-01-01: x", "f.yaml:1:1: a key that is no text; write it in quotes"},
		{"a: 1\nb: 2\n'a': 3", `f.yaml:3:1: the key "a" stands twice; keep one of them`},
		{"a: !!binary aGk=", "f.yaml:1:4: a value with the tag !!binary; write it in quotes"},
		{"a: !mine x", "f.yaml:1:4: a value with the tag !mine; write it in quotes"},
		{"a: !!set {x}", "f.yaml:1:4: a mapping with the tag !!set"},
		{"a: !mine [x]", "f.yaml:1:4: a list with the tag !mine"},
		{"a: {<<: 7}", "f.yaml:1:9: << wants a mapping, or a list of them"},
		{"a: &a [*a]", "f.yaml:1:4: it nests deeper than 200"},
		{"a: [1", "f.yaml:1: no YAML: did not find expected ',' or ']'"},
		{"a: \xff", "f.yaml:1:4: no YAML: invalid leading UTF-8 octet"},
		{"# ü\na: ü\x01", "f.yaml:2:5: no YAML: control characters are not allowed"},
		{"a: 1\nb: *x", "f.yaml:2:4: no YAML: unknown anchor 'x' referenced"},
		{"\ta: 1", "f.yaml:1:1: no YAML: " + tab},
		{"a:\n  b: 1\n\tc: 2\n", "f.yaml:3:1: no YAML: " + tab},
		{"a: 1\nb:\n  - x\n  \t- y\n", "f.yaml:4:3: no YAML: " + tab},
		{"x: |\n\tfoo", "f.yaml:2:1: no YAML: " + tab},
		{"a: 1\nb: @x", "f.yaml:2:4: no YAML: found character that cannot start any token"},
		{"a: [\n 1,\n 2\nb: 3", "f.yaml:4: no YAML: did not find expected ',' or ']'"},
		{"a:\n  - b\n c: 1", "f.yaml:3: no YAML: did not find expected key"},
		{"a: 1\n---\nb: 1", "f.yaml:2:1: a second document starts here"},
		{"# nothing", "f.yaml: the file is empty"},
	} {
		if got := read("f.yaml", c.content); got != c.want {
			t.Errorf("%.60q:\n got %s\nwant %s", c.content, got, c.want)
		}
	}
}

// TestAliases: a few lines cannot stand for more than fits into memory.
func TestAliases(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	if got := read("f.yaml", b.String()); !strings.Contains(got,
		"the aliases stand for more than 1048576 values; write them out") {
		t.Errorf("%.200s", got)
	}
}

// TestKeys: the outermost keys have their places.
func TestKeys(t *testing.T) {
	t.Parallel()
	for path, content := range map[string]string{
		"f.json": "{\"a\": 1,\n  \"b\": {\"c\": 1}}", "f.yaml": "a: 1\nb: {c: 1}",
	} {
		doc, err := Decode(path, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(doc.Keys)
		if want := map[string]string{"f.json": "map[a:{1 2} b:{2 3}]",
			"f.yaml": "map[a:{1 1} b:{2 1}]"}[path]; got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestManyKeys: what a document costs grows with its size alone.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	const n = 200_000
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",\n\"k%d\": 1", i)
	}
	doc, err := Decode("f.json", []byte("{"+b.String()[1:]+"}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Keys[fmt.Sprint("k", n-1)]; got != (Place{n + 1, 1}) {
		t.Errorf("the last key stands at %v", got)
	}
}

// FuzzDecode: no content makes it panic, and what is a document can be written as JSON.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a": [1, 2.5, "x", null, true]}`, "a: 1", "[", `{"a":1,"a":2}`,
		"a: &a [*a]", "<<: {x: 0o17}", "? x\n: !!int 5"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, path := range []string{"a.json", "a.yaml"} {
			doc, err := Decode(path, content)
			if err != nil {
				if _, ours := err.(*Error); !ours {
					t.Errorf("%s: %q: the error %v", path, content, err)
				}
				continue
			}
			if _, err := json.Marshal(doc.Value); err != nil {
				t.Errorf("%s: %q: %v", path, content, err)
			}
		}
	})
}
