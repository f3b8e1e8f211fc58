package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

var fileName = regexp.MustCompile(`^audit-([0-9]{6,12})\.jsonl$`)

func nameOf(number int) string { return fmt.Sprintf("audit-%06d.jsonl", number) }

// listFiles returns the numbers of the log's files, ascending and without a gap.
func listFiles(dir vfs.Dir) ([]int, error) {
	infos, err := dir.List(".")
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var numbers []int
	for _, info := range infos {
		m := fileName.FindStringSubmatch(info.Name)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n == 0 || nameOf(n) != info.Name {
			return nil, fmt.Errorf("%s: %w: no file of the audit log has this number",
				info.Name, tier.ErrDamaged)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if i > 0 && n != numbers[i-1]+1 {
			return nil, fmt.Errorf("%s: %w: the file is missing between %s and %s",
				nameOf(numbers[i-1]+1), tier.ErrDamaged, nameOf(numbers[i-1]), nameOf(n))
		}
	}
	return numbers, nil
}

// tail is what a crash left behind the last whole record: bytes from an offset of the last file on.
type tail struct {
	offset, bytes int64
}

// scan reads files in order into c, and shows each record to visit, which may be nil. It returns
// the torn tail of the last one; the offset is its end if there is none.
func scan(dir vfs.Dir, numbers []int, c *chain, visit func(record)) (tail, error) {
	var end tail
	for i, n := range numbers {
		f, err := dir.Open(nameOf(n))
		if err != nil {
			return tail{}, fmt.Errorf("audit log: %w", err)
		}
		end, err = scanFile(f, n, i == len(numbers)-1, c, visit)
		if err := errors.Join(err, f.Close()); err != nil {
			return tail{}, err
		}
	}
	return end, nil
}

func scanFile(f vfs.File, number int, last bool, c *chain, visit func(record)) (tail, error) {
	lines := newLineReader(f)
	for at := 1; ; at++ {
		start := lines.offset
		line, whole, err := lines.next()
		if err == io.EOF && (last || at > 1) {
			return tail{offset: start}, nil
		}
		if err != nil && err != io.EOF {
			return tail{}, fmt.Errorf("audit log: %w", err)
		}
		var r record
		switch {
		case err == io.EOF:
			err = chainError{errors.New("the file is empty, and not the last")}
		case !whole:
			err = errors.New("the line has no end")
		case c.first == 0:
			r, err = c.begin(line, number)
		default:
			r, err = c.step(line)
		}
		if err == nil {
			if visit != nil {
				visit(r)
			}
			continue
		}
		if last && torn(err) && !unfinished(line, whole) {
			err = fmt.Errorf("it is no record, nor what a crash leaves of one (%w): everything before "+
				"it is whole; look at it, move it out of the file, and start again", err)
		} else if last && torn(err) {
			promised, err2 := lines.promised(c.seq + 1)
			if err2 != nil || !promised {
				return tail{offset: start, bytes: lines.offset - start}, err2
			}
			err = fmt.Errorf("%w, and a later record says that one was durable here", err)
		}
		if !errors.Is(err, tier.ErrNewer) {
			err = fmt.Errorf("%w: %w", tier.ErrDamaged, err)
		}
		return tail{}, fmt.Errorf("%s:%d: %w", nameOf(number), at, err)
	}
}

// torn reports whether a crash can have made a line of which err was said.
func torn(err error) bool {
	var misfit chainError
	return !errors.As(err, &misfit) && !errors.Is(err, tier.ErrNewer)
}

// unfinished reports whether a crash may have left the line of a record that was being written: of
// a process, its beginning; of a machine, also pages that never reached the disk, read as zeros.
func unfinished(line []byte, whole bool) bool {
	if bytes.IndexByte(line, 0) >= 0 {
		return true
	}
	const frame = `{"v":`
	if n := min(len(line), len(frame)); whole || string(line[:n]) != frame[:n] {
		return false
	}
	d := json.NewDecoder(bytes.NewReader(line))
	var value json.RawMessage
	switch err := d.Decode(&value); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return true
	case err != nil:
		return false
	}
	_, err := d.Token()
	return err == io.EOF // but for its newline it is there
}

// lineReader reads lines of bounded length and counts bytes.
type lineReader struct {
	r      *bufio.Reader
	line   []byte
	offset int64
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReader(r)} }

// next returns the next line without its newline, valid until the next call; whole is false for one
// that has none, or is too long to be ours. At the end the error is io.EOF.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	l.line = l.line[:0]
	for err = bufio.ErrBufferFull; err == bufio.ErrBufferFull && len(l.line) < lineBytesMax; {
		var part []byte
		part, err = l.r.ReadSlice('\n')
		l.line = append(l.line, part...)
		l.offset += int64(len(part))
	}
	switch {
	case err == nil && len(l.line) <= lineBytesMax:
		return l.line[:len(l.line)-1], true, nil
	case err == nil, err == bufio.ErrBufferFull, err == io.EOF && len(l.line) > 0:
		return l.line, false, nil
	}
	return nil, false, err
}

// promised reads to the end, and reports whether any record there says that the record seq had
// been durable when it was written.
func (l *lineReader) promised(seq uint64) (bool, error) {
	found := false
	for {
		line, whole, err := l.next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return false, fmt.Errorf("audit log: %w", err)
		}
		if r, err := readLine(line); whole && err == nil && r.Batch > seq {
			found = true
		}
	}
}
