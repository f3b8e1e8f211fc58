package plugin

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tierd/tierd/runtime/tier"
)

// script is a golden file: cases of one batch each, as text.
//
//	# Comments and empty lines may stand anywhere before the dashes.
//	config {"window_seconds": 3600}
//	node broker-1
//	now 2026-03-01T12:00:00Z
//	table orders tier=hot
//	log orders/0 local_bytes=300MiB disk_used=80GiB disk_free=20GiB
//	seg 0 100 bytes=100MiB age=2h local copied
//	seg 100 200 bytes=50MiB age=30m local
//	----
//	orders/0 [0, 100) score 52428800
//	orders/0 [100, 200) score 52428800 keep
//
// What follows the dashes, up to an empty line, is the answer. Every case stands alone.
type script struct {
	cases []scriptCase
}

type scriptCase struct {
	line   int    // of its first directive
	input  string // as written, up to and including the dashes
	want   string
	config json.RawMessage
	node   string
	batch  Batch
}

// scriptEnd separates a case from its answer.
const scriptEnd = "----"

// defaultNow is the time of a case that names none.
var defaultNow = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// parseScript reads a golden file. Errors name file and line.
func parseScript(file, text string) (*script, error) {
	p := scriptParser{}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if err := p.line(i+1, line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
	}
	if p.answering {
		p.finish()
	}
	if p.c.line != 0 {
		return nil, fmt.Errorf("%s:%d: the case has no %q before its answer", file, p.c.line,
			scriptEnd)
	}
	if len(p.cases) == 0 {
		return nil, fmt.Errorf("%s: there is no case in it", file)
	}
	return &script{p.cases}, nil
}

type scriptParser struct {
	cases     []scriptCase
	c         scriptCase
	tables    []Table
	input     strings.Builder
	want      strings.Builder
	answering bool
}

func (p *scriptParser) line(number int, text string) error {
	if p.answering {
		if text == "" {
			p.finish()
			p.input.WriteString("\n")
			return nil
		}
		p.want.WriteString(text + "\n")
		return nil
	}
	p.input.WriteString(text + "\n")
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if word == "" || strings.HasPrefix(word, "#") {
		return nil
	}
	if p.c.line == 0 {
		p.c.line = number
		p.c.batch.Now = tier.TimeOf(defaultNow)
	}
	rest = strings.TrimSpace(rest)
	switch word {
	case scriptEnd:
		return p.dashes()
	case "config":
		if !json.Valid([]byte(rest)) {
			return fmt.Errorf("config is not JSON: %s", rest)
		}
		p.c.config = json.RawMessage(rest)
	case "node":
		p.c.node = rest
	case "now":
		at, err := tier.ParseTime(rest)
		if err != nil {
			return fmt.Errorf("now %s: want a time such as 2026-03-01T12:00:00Z", rest)
		}
		p.c.batch.Now = at
	case "table":
		return p.table(strings.Fields(rest))
	case "log":
		return p.log(strings.Fields(rest))
	case "seg":
		return p.segment(strings.Fields(rest))
	default:
		return fmt.Errorf("%q is no directive; there are config, node, now, table, log, seg and %s",
			word, scriptEnd)
	}
	return nil
}

func (p *scriptParser) dashes() error {
	tables, err := NewTables(p.tables)
	if err != nil {
		return err
	}
	if p.c.batch.Len() == 0 {
		return fmt.Errorf("the case has no seg")
	}
	p.c.batch.Tables = tables
	for i := range p.c.batch.Logs {
		l := &p.c.batch.Logs[i]
		l.Table = tables.Index(l.ID.Table)
	}
	p.answering = true
	return nil
}

func (p *scriptParser) finish() {
	p.c.input, p.c.want = p.input.String(), p.want.String()
	p.cases = append(p.cases, p.c)
	*p = scriptParser{cases: p.cases}
}

func (p *scriptParser) table(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("table: want a name, and labels as key=value")
	}
	t := Table{Name: words[0], Labels: map[string]string{}}
	for _, w := range words[1:] {
		k, v, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("label %s: want key=value", w)
		}
		t.Labels[k] = v
	}
	p.tables = append(p.tables, t)
	return nil
}

func (p *scriptParser) log(words []string) error {
	if len(words) == 0 {
		return fmt.Errorf("log: want an id such as orders/0")
	}
	id, err := tier.ParseLogID(words[0])
	if err != nil {
		return err
	}
	l := Log{ID: id, State: tier.Enabled}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "local_bytes":
			l.LocalBytes, err = parseBytes(v)
		case "disk_used":
			l.DiskUsedBytes, err = parseBytes(v)
		case "disk_free":
			l.DiskFreeBytes, err = parseBytes(v)
		case "state":
			l.State = tier.TierState(v)
			if stateByte(l.State) == StateUnknown {
				err = fmt.Errorf("want %s, %s or %s", tier.Enabled, tier.Disabling, tier.Disabled)
			}
		default:
			err = fmt.Errorf("want local_bytes=, disk_used=, disk_free= or state=")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	p.c.batch.Logs = append(p.c.batch.Logs, l)
	return nil
}

func (p *scriptParser) segment(words []string) error {
	logs := p.c.batch.Logs
	if len(logs) == 0 || len(words) < 2 {
		return fmt.Errorf("seg: want base and next offsets, after a log")
	}
	base, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return fmt.Errorf("base %s: want an offset", words[0])
	}
	next, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil || next < base {
		return fmt.Errorf("next %s: want an offset that is not below the base", words[1])
	}
	s := Segment{Range: tier.Range{Base: tier.Offset(base), Next: tier.Offset(next)}}
	for _, w := range words[2:] {
		k, v, _ := strings.Cut(w, "=")
		switch k {
		case "bytes":
			s.Bytes, err = parseBytes(v)
		case "age":
			s.Age, err = time.ParseDuration(v)
			s.MaxTime = p.c.batch.Now.Add(-s.Age)
		case "local":
			s.Local = true
		case "remote":
			s.Remote = true
		case "copied":
			s.Copied = true
		case "verified":
			s.Verified = true
		default:
			err = fmt.Errorf("want bytes=, age=, local, remote, copied or verified")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
	}
	l := &logs[len(logs)-1]
	if n := len(l.Segments); n > 0 && l.Segments[n-1].Next > s.Base {
		return fmt.Errorf("the segments of a log ascend: %s follows %s", s.Range,
			l.Segments[n-1].Range)
	}
	l.Segments = append(l.Segments, s)
	return nil
}

// parseBytes reads a number of bytes with an optional binary unit.
func parseBytes(s string) (int64, error) {
	shift := 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if number, ok := strings.CutSuffix(s, unit); ok {
			s, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n<<shift>>shift != n {
		return 0, fmt.Errorf("want bytes, such as 1024 or 100MiB")
	}
	return n << shift, nil
}
