package objstore

import (
	"fmt"
	"strings"
)

// componentBytesMax is the longest step of a key, in bytes: the longest name of the common file
// systems. A Kafka topic of the greatest length, 249 characters, fits in any case.
const componentBytesMax = 255

// escape writes s as one step of a key. It keeps letters, digits, "_", "-" and dots, but for a dot
// at the beginning (hidden files, "." and "..") or at the end (Azure drops it); every other byte
// becomes "%" and two upper-case hexadecimal digits. It is injective: see unescape.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	stays := func(i int) bool { return plain(s[i]) || s[i] == '.' && i > 0 && i < len(s)-1 }
	first := 0
	for first < len(s) && stays(first) {
		first++
	}
	if first == len(s) {
		return s // as nearly all are
	}
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; stays(i) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&0xf]})
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '_' || c == '-'
}

// unescape returns the s whose escape is e, and refuses everything that escape does not write.
func unescape(e string) (string, error) {
	if escape(e) == e {
		return e, nil
	}
	var b strings.Builder
	for i := 0; i < len(e); i++ {
		if e[i] != '%' {
			b.WriteByte(e[i])
			continue
		}
		if i+2 >= len(e) {
			return "", fmt.Errorf("%q: ends within an escape", e)
		}
		hi, lo := nibble(e[i+1]), nibble(e[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("%q: %q is no escape", e, e[i:i+3])
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	s := b.String()
	if escape(s) != e {
		return "", fmt.Errorf("%q: want %q", e, escape(s))
	}
	return s, nil
}

func nibble(c byte) int { return strings.IndexByte("0123456789ABCDEF", c) }
