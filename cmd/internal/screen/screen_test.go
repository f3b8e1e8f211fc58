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
