package api

import (
	"fmt"
	"net/http"
	"strconv"
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

// expansion is how much more memory decoded records are taken to need than their batches.
const expansion = 4

func (h *reading) readable(w http.ResponseWriter, r *http.Request) {
	v, err := h.a.Readable(r.Context())
	answer(w, v, err)
}

// records serves GET .../records: the bytes as they were written, or decoded.
func (h *reading) records(id tier.LogID) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		from, maxBytes, err := placeOf(r)
		if err != nil {
			answer(w, nil, err)
			return
		}
		format := r.URL.Query().Get("format")
		weight := maxBytes
		if format == "json" {
			weight = min(expansion*maxBytes, recordsBudget)
		}
		if !h.budget.TryAcquire(weight) {
			w.Header().Set("Retry-After", "1")
			answer(w, nil, Errorf(CodeUnavailable, "too much is being read at once; try again, or with a "+
				"smaller max_bytes"))
			return
		}
		defer h.budget.Release(weight)
		switch format {
		case "", "raw":
			p, err := h.a.Read(r.Context(), id, from, maxBytes)
			if err != nil {
				answer(w, nil, err)
				return
			}
			writePiece(w, p)
		case "json":
			v, err := h.a.Records(r.Context(), id, from, maxBytes)
			answer(w, v, err)
		default:
			answer(w, nil, Errorf(CodeInvalid, "format=%q: want raw or json", format))
		}
	}
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
