package screen

import "testing"

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want, line string }{
		{"", "", ""},
		{"größer \u00a0日本 🐘 \uFFFD 'x' \\n", "größer \u00a0日本 🐘 \uFFFD 'x' \\n",
			"größer \u00a0日本 🐘 \uFFFD 'x' \\n"},
		{"a\tb\nc", "a\tb\nc", `a\tb\nc`},
		{"\x1b[31m\r\a\x00\x7f", `\x1b[31m\r\a\x00\x7f`, `\x1b[31m\r\a\x00\x7f`},
		{"\u009b31m\u202etxt\u200b\u2028", `\u009b31m\u202etxt\u200b\u2028`,
			`\u009b31m\u202etxt\u200b\u2028`},
		{"\xff\x9b1\uFFFD", `\xff\x9b1` + "\uFFFD", `\xff\x9b1` + "\uFFFD"},
	} {
		if got := Text(c.text); got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.text, got, c.want)
		}
		if got := Line(c.text); got != c.line {
			t.Errorf("Line(%q) = %q, want %q", c.text, got, c.line)
		}
	}
}

// TestCommands: nothing that others say is a command to continuous integration; addresses and
// headings are none.
func TestCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"::error::x":                 "\\x3a:error::x",
		"a\n \u00a0::error a=b,c::x": "a\n \u00a0\\x3a:error a=b,c::x",
		"a ##[group]x ##vso[y] z":    `a \x23#[group]x \x23#vso[y] z`,
		"::stop-commands::##[x":      `\x3a:stop-commands::\x23#[x`,
		"say ::error::x":             "say ::error::x",
		"::ffff:127.0.0.1 ::1 [::]":  "::ffff:127.0.0.1 ::1 [::]",
		"## a [b] #[c":               "## a [b] #[c",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
		if got := Visible(text); got != text {
			t.Errorf("Visible(%q) = %q", text, got)
		}
	}
}
