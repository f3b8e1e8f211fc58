package sim

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
)

// rebuild plays "tierd rebuild" and says what came of it.
func (s *scenario) rebuild() error {
	r, err := s.w.Rebuild()
	if err != nil {
		return err
	}
	for _, l := range r.Logs {
		fmt.Fprintf(&s.out, "%s: log start %d, copied offset %d, %d copies, %d left out, %d said again\n",
			l.State.Log, l.State.LogStart, l.State.Copied, l.Copies, l.LeftOut, l.Moved)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&s.out, "table %s: %s, epoch %d\n", t.Table, t.State, t.Epoch)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&s.out, "problem: %s: %v\n", shortKey(p.Key), p.Err)
	}
	return nil
}

// spoil does something to the first object that has the part in its key.
func (s *scenario) spoil(how, part string) error {
	for _, key := range s.w.Objects.Keys() {
		if !strings.Contains(key, part) {
			continue
		}
		data, _ := s.w.Objects.Object(key)
		switch how {
		case "newer":
			data = bytes.Replace(data, []byte(`"version":1`), []byte(`"version":9`), 1)
		case "older":
			data = without(data, `,"incarnation":"topic-orders"`)
		default:
			data = data[:len(data)/2]
		}
		s.w.Lose(key)
		s.w.Objects.Put(key, data)
		fmt.Fprintf(&s.out, "%s: %s\n", how, shortKey(key))
		return nil
	}
	return fmt.Errorf("no object has %q in its key", part)
}

// without takes a member out of a document, and seals it again: as who did not know of it wrote it.
func without(data []byte, member string) []byte {
	text := data[:max(0, bytes.LastIndex(data, []byte(`,"sha256":`)))]
	rest := bytes.Replace(text, []byte(member), nil, 1)
	if len(rest) == len(text) {
		panic(fmt.Sprintf("sim: no %s in %s", member, data))
	}
	return fmt.Appendf(nil, "%s,\"sha256\":\"%x\"}\n", rest, sha256.Sum256(rest))
}
