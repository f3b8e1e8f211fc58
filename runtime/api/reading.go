package api

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/tierd/tierd/runtime/tier"
)

// The bounds of what one request of records gives, in bytes.
const (
	recordsBytes    = 1 << 20
	recordsBytesMax = 64 << 20
)

// Headers of an answer with the bytes of a log.
const (
	headerBase  = "Tierd-Base-Offset"
	headerNext  = "Tierd-Next-Offset"
	headerStart = "Tierd-Log-Start"
	headerEnd   = "Tierd-Log-End"
)

// recordsBudget bounds what all answers with records hold in memory at one time, in bytes: clients
// that take nothing hold it until their connection ends.
const recordsBudget = 512 << 20

// reading serves the content of logs.
type reading struct {
	a      Archive
	budget *semaphore.Weighted // of bytes
}

func newReading(a Archive) *reading {
	return &reading{a, semaphore.NewWeighted(recordsBudget)}
}

// JSON of records is taken to need so much more memory than what they hold, and so much for each.
const (
	expansion   = 8
	recordBytes = 400
)

func (h *reading) readable(w http.ResponseWriter, r *http.Request) {
	v, err := h.a.Readable(r.Context())
	answer(w, v, err)
}

// records serves GET .../records: the bytes as they were written, or decoded.
func (h *reading) records(id tier.LogID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := onlyParams(r, "offset", "timestamp", "max_bytes", "format"); err != nil {
			answer(w, nil, err)
			return
		}
		from, maxBytes, err := placeOf(r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		share := &share{budget: h.budget}
		defer share.end()
		switch format := r.URL.Query().Get("format"); format {
		case "", "raw":
			h.raw(w, r, id, from, maxBytes, share)
		case "json":
			h.decoded(w, r, id, from, maxBytes, share)
		default:
			answer(w, nil, Errorf(CodeInvalid, "format=%q: want raw or json", format))
		}
	}
}

func (h *reading) raw(w http.ResponseWriter, r *http.Request, id tier.LogID, from Place,
	maxBytes int64, share *share) {
	err := share.hold(maxBytes)
	var p *Piece
	if err == nil {
		p, err = h.a.Read(r.Context(), id, from, maxBytes)
	}
	if err == nil {
		err = share.hold(int64(len(p.Bytes))) // a single batch may be larger
	}
	if err != nil {
		unread(w, err)
		return
	}
	writePiece(w, p)
}

func (h *reading) decoded(w http.ResponseWriter, r *http.Request, id tier.LogID, from Place,
	maxBytes int64, share *share) {
	err := share.hold(min(expansion*maxBytes, recordsBudget/2))
	var v *Records
	if err == nil {
		v, err = h.a.Records(r.Context(), id, from, maxBytes)
	}
	if err == nil {
		err = share.hold(v.memory()) // a single record may be larger
	}
	if err != nil {
		unread(w, err)
		return
	}
	answer(w, v, nil)
}

// unread answers with the error, and says when to come again where that may help.
func unread(w http.ResponseWriter, err error) {
	if CodeOf(err) == CodeUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, nil, err)
}

// memory is how much the records are taken to need, with their JSON.
func (v *Records) memory() int64 {
	n := 0
	for i := range v.Records {
		r := &v.Records[i]
		n += recordBytes + expansion*(r.Key.len()+r.Value.len())
		for _, h := range r.Headers {
			n += recordBytes + expansion*(len(h.Key)+h.Value.len())
		}
	}
	return int64(n)
}

func (b *Bytes) len() int {
	if b.Text != nil {
		return len(*b.Text)
	}
	return len(b.Base64)
}

// share is what of the memory of all answers one of them has.
type share struct {
	budget *semaphore.Weighted
	held   int64
}

// hold makes the share as large as n bytes, if there is room for it. What is larger than all there
// is takes all.
func (s *share) hold(n int64) error {
	n = min(n, recordsBudget)
	if n <= s.held {
		s.budget.Release(s.held - n)
	} else if !s.budget.TryAcquire(n - s.held) {
		return Errorf(CodeUnavailable, "too much is being read at once; try again, or with a smaller "+
			"max_bytes")
	}
	s.held = n
	return nil
}

func (s *share) end() { s.budget.Release(s.held) }

// onlyParams refuses a query that is not well formed, and one with parameters that are not known or
// come twice: whoever misspells an offset must not get the log from its start.
func onlyParams(r *http.Request, names ...string) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Errorf(CodeInvalid, "query %q: %v", r.URL.RawQuery, err)
	}
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch {
		case !slices.Contains(names, name):
			return Errorf(CodeInvalid, "parameter %q: want one of %s", name, strings.Join(names, ", "))
		case len(q[name]) > 1:
			return Errorf(CodeInvalid, "parameter %q is given %d times; keep one", name, len(q[name]))
		}
	}
	return nil
}

func writePiece(w http.ResponseWriter, p *Piece) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(p.Bytes)))
	for name, o := range map[string]tier.Offset{headerBase: p.Base, headerNext: p.Next,
		headerStart: p.Start, headerEnd: p.End} {
		h.Set(name, strconv.FormatInt(int64(o), 10))
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(p.Bytes) // a client that went away is nobody's error
}

// placeOf reads offset, timestamp and max_bytes.
func placeOf(r *http.Request) (from Place, maxBytes int64, err error) {
	number := func(name string, least, most int64) (*int64, error) {
		text := r.URL.Query().Get(name)
		if text == "" && !r.URL.Query().Has(name) {
			return nil, nil
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < least || n > most {
			return nil, Errorf(CodeInvalid, "%s=%q: want a whole number from %d to %d", name, text, least,
				most)
		}
		return &n, nil
	}
	o, err := number("offset", 0, 1<<63-1)
	if err != nil {
		return from, 0, err
	}
	if from.Timestamp, err = number("timestamp", -1<<63, 1<<63-1); err != nil {
		return from, 0, err
	}
	size, err := number("max_bytes", 1, recordsBytesMax)
	if err != nil {
		return from, 0, err
	}
	if o != nil && from.Timestamp != nil {
		return from, 0, Errorf(CodeInvalid, "both offset and timestamp; keep one of them")
	}
	if o != nil {
		from.Offset = (*tier.Offset)(o)
	}
	if maxBytes = recordsBytes; size != nil {
		maxBytes = *size
	}
	return from, maxBytes, nil
}

// segment serves GET .../segment?base=N&file=NAME: a file of a copied segment, in whole or in
// ranges (RFC 9110). Its ETag is its SHA-256, since a copy never changes.
func (h *reading) segment(id tier.LogID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := onlyParams(r, "base", "file"); err != nil {
			answer(w, nil, err)
			return
		}
		q := r.URL.Query()
		base, err := strconv.ParseInt(q.Get("base"), 10, 64)
		if err != nil || base < 0 {
			answer(w, nil, Errorf(CodeInvalid, "base=%q: want a whole number, not negative",
				q.Get("base")))
			return
		}
		f, err := h.a.File(r.Context(), id, tier.Offset(base), q.Get("file"))
		if err != nil {
			answer(w, nil, err)
			return
		}
		defer func() { _ = f.Close() }() // only read
		head := w.Header()
		head.Set("Content-Type", "application/octet-stream")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("ETag", fmt.Sprintf(`"%s"`, f.SHA256))
		head.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", f.Name))
		// Where reading ends in an error, the answer is shorter than it said, and the connection ends.
		http.ServeContent(w, r, "", time.Time{}, f)
	}
}
