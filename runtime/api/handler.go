package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tierd/tierd/runtime/tier"
)

// Backend is what answers: the daemon, or the client of one. Methods are safe for concurrent use.
// An error that is or wraps an *Error keeps its code; any other is internal.
type Backend interface {
	Viewer
	Adviser
	Operator
	TableDropper
}

// Viewer tells what there is and where it stands.
type Viewer interface {
	// Health tells whether the daemon works. It must answer at once.
	Health(ctx context.Context) (*Health, error)
	// Status describes everything.
	Status(ctx context.Context) (*Status, error)
	// Segments lists a log; CodeNotFound for one that neither ledger nor source knows.
	Segments(ctx context.Context, log tier.LogID) (*Listing, error)
	// Copies gives what the ledger holds of a log, from a manifest position on, as much as fits into
	// one answer; CodeNotFound for a log that it does not have.
	Copies(ctx context.Context, log tier.LogID, from tier.Position) (*Copies, error)
}

// Adviser says what is decided now and why. It asks as a deletion would, and deletes nothing.
type Adviser interface {
	// Explain says which tier holds an offset of a log and what the gate answers now for it.
	Explain(ctx context.Context, log tier.LogID, offset tier.Offset) (*Explanation, error)
	// PolicyInput gives what the policies would be asked now about the segment that holds an offset
	// of a log: about the local one where there is one, unless the action says which; CodeNotFound
	// where there is none.
	PolicyInput(ctx context.Context, log tier.LogID, offset tier.Offset, action tier.Action) (
		*PolicyInput, error)
	// Plan says what would be deleted now.
	Plan(ctx context.Context) (*Plan, error)
	// Compare is Plan by other policies or for a later moment, beside that of today; CodeConfig where
	// the policies are wrong.
	Compare(ctx context.Context, q *WhatIf) (*Plan, error)
}

// Operator does what a person asks for.
type Operator interface {
	// Resume lets the deletions of a table that is paused go on.
	Resume(ctx context.Context, table string) error
	// AcceptLoss accepts that the damaged segment that holds the offset is lost.
	AcceptLoss(ctx context.Context, log tier.LogID, offset tier.Offset) (*AcceptedLoss, error)
	// AcceptClock takes the wall time for right after a step.
	AcceptClock(ctx context.Context) error
	// Reload loads configuration, policies and data as one generation, and returns it. On an error,
	// which is CodeConfig, the one that runs stays in force. Where it would let more remote data go
	// than the limits allow without a question, accept must be the digest of just these.
	Reload(ctx context.Context, accept string) (*Generation, error)
}

// TableDropper lets the remote data of a table go that the configuration does not govern.
type TableDropper interface {
	// DropPlan says what would go if a table were dropped, and its digest. It is CodeRefused for a
	// table that the configuration governs.
	DropPlan(ctx context.Context, table string) (*Removal, error)
	// Drop lets all remote data of a table go, if accept is the digest of just these.
	Drop(ctx context.Context, table, accept string) (*Removal, error)
}

// Handler serves the contract from b, and metrics as they are; where b is an Archive, the content
// of logs too. It answers no request that changes something to a web page of another origin.
func Handler(b Backend, metrics http.Handler) http.Handler {
	h := &handler{b: b}
	if a, ok := b.(Archive); ok {
		h.reading = newReading(a)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/-/healthy", h.health(func(x *Health) bool { return x.Healthy }))
	mux.HandleFunc("/-/ready", h.health(func(x *Health) bool { return x.Ready }))
	mux.HandleFunc("/-/reload", only(http.MethodPost, h.reload))
	mux.Handle("/metrics", metrics)
	mux.HandleFunc("/api/v1/status", only(http.MethodGet, h.status))
	mux.HandleFunc("/api/v1/plan", only(http.MethodGet, h.plan))
	mux.HandleFunc("/api/v1/plan/compare", only(http.MethodPost, h.compare))
	mux.HandleFunc("/api/v1/clock/accept", only(http.MethodPost, h.acceptClock))
	mux.HandleFunc("/api/v1/logs", only(http.MethodGet, h.list))
	mux.HandleFunc("/api/v1/openapi.json", only(http.MethodGet, openAPI))
	mux.HandleFunc("/api/v1/logs/", h.logs)
	mux.HandleFunc("/api/v1/tables/", h.tables)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, nil, Errorf(CodeNotFound, "%s: no such path; see docs/json.md", r.URL.Path))
	})
	sameOrigin := http.NewCrossOriginProtection()
	sameOrigin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusForbidden,
			failure{Errorf(CodeRefused, "not for pages of another origin")})
	}))
	return sameOrigin.Handler(mux)
}

type handler struct {
	b       Backend
	reading *reading // nil where b is no Archive
}

// only refuses every other method. GET also stands for HEAD.
func only(method string, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
			serve(w, r)
			return
		}
		w.Header().Set("Allow", method)
		write(w, http.StatusMethodNotAllowed, failure{Errorf(CodeInvalid, "use %s", method)})
	}
}

// health answers 200 where good says so of the daemon's health, else 503 with the reasons.
func (h *handler) health(good func(*Health) bool) http.HandlerFunc {
	return only(http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		switch health, err := h.b.Health(r.Context()); {
		case err != nil:
			answer(w, nil, err)
		case !good(health):
			write(w, http.StatusServiceUnavailable, health)
		default:
			write(w, http.StatusOK, health)
		}
	})
}

func (h *handler) reload(w http.ResponseWriter, r *http.Request) {
	g, err := h.b.Reload(r.Context(), r.URL.Query().Get("accept"))
	answer(w, g, err)
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	s, err := h.b.Status(r.Context())
	if table := r.URL.Query().Get("table"); err == nil && table != "" {
		s = s.Of(table)
		if len(s.Tables) == 0 {
			s, err = nil, Errorf(CodeNotFound, "table %q: not known", table)
		}
	}
	answer(w, s, err)
}

// logs serves /api/v1/logs/LOG/VERB.
func (h *handler) logs(w http.ResponseWriter, r *http.Request) {
	name, verb := subject(r, "/api/v1/logs/")
	serve := map[string]http.HandlerFunc{
		"segments": only(http.MethodGet, h.onLog(name, func(r *http.Request,
			id tier.LogID) (any, error) {
			return h.b.Segments(r.Context(), id)
		})),
		"explain": only(http.MethodGet, h.onOffset(name, func(r *http.Request, id tier.LogID,
			o tier.Offset) (any, error) {
			return h.b.Explain(r.Context(), id, o)
		})),
		"policy-input": only(http.MethodGet, h.onOffset(name, func(r *http.Request, id tier.LogID,
			o tier.Offset) (any, error) {
			return h.b.PolicyInput(r.Context(), id, o, tier.Action(r.URL.Query().Get("action")))
		})),
		"accept-loss": only(http.MethodPost, h.onOffset(name, func(r *http.Request, id tier.LogID,
			o tier.Offset) (any, error) {
			return h.b.AcceptLoss(r.Context(), id, o)
		})),
		"copies": only(http.MethodGet, h.onLog(name, func(r *http.Request,
			id tier.LogID) (any, error) {
			return h.copies(r, id)
		})),
		"records": only(http.MethodGet, h.onArchive(name, (*reading).records)),
		"segment": only(http.MethodGet, h.onArchive(name, (*reading).segment)),
	}[verb]
	if serve == nil {
		answer(w, nil, Errorf(CodeNotFound, "%q: no such path; want /api/v1/logs/LOG/records, "+
			"/segments, /segment, /copies, /explain, /policy-input or /accept-loss", r.URL.Path))
		return
	}
	serve(w, r)
}

// tables serves /api/v1/tables/TABLE/VERB.
func (h *handler) tables(w http.ResponseWriter, r *http.Request) {
	name, verb := subject(r, "/api/v1/tables/")
	switch {
	case verb == "resume" && name != "":
		only(http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
			answer(w, struct{}{}, h.b.Resume(r.Context(), name))
		})(w, r)
	case verb == "drop" && name != "":
		h.drop(w, r, name)
	default:
		answer(w, nil, Errorf(CodeNotFound, "%q: no such path; want /api/v1/tables/TABLE/resume "+
			"or /drop", r.URL.Path))
	}
}

// subject splits the path after the root into what it is about and the verb, its last step.
func subject(r *http.Request, root string) (name, verb string) {
	rest := strings.TrimPrefix(r.URL.Path, root)
	i := strings.LastIndexByte(rest, '/')
	return rest[:max(i, 0)], rest[i+1:]
}

func (h *handler) onLog(name string, do func(*http.Request, tier.LogID) (any, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := tier.ParseLogID(name)
		if err != nil {
			answer(w, nil, Errorf(CodeInvalid, "%v", err))
			return
		}
		v, err := do(r, id)
		answer(w, v, err)
	}
}

// list serves /api/v1/logs.
func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	if h.reading == nil {
		answer(w, nil, errNoArchive)
		return
	}
	h.reading.readable(w, r)
}

var errNoArchive = Errorf(CodeUnavailable, "the content of logs cannot be read here")

// onArchive serves what needs an Archive.
func (h *handler) onArchive(name string, serve func(*reading, tier.LogID) http.HandlerFunc,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, err := tier.ParseLogID(name)
		switch {
		case err != nil:
			answer(w, nil, Errorf(CodeInvalid, "%v", err))
		case h.reading == nil:
			answer(w, nil, errNoArchive)
		default:
			serve(h.reading, id)(w, r)
		}
	}
}

// copies serves /api/v1/logs/LOG/copies?from=POSITION.
func (h *handler) copies(r *http.Request, id tier.LogID) (any, error) {
	text := r.URL.Query().Get("from")
	from, err := strconv.ParseUint(cmp.Or(text, "0"), 10, 64)
	if err != nil {
		return nil, Errorf(CodeInvalid, "from=%q: want a whole number, not negative", text)
	}
	return h.b.Copies(r.Context(), id, tier.Position(from))
}

func (h *handler) onOffset(name string,
	do func(*http.Request, tier.LogID, tier.Offset) (any, error),
) http.HandlerFunc {
	return h.onLog(name, func(r *http.Request, id tier.LogID) (any, error) {
		text := r.URL.Query().Get("offset")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, Errorf(CodeInvalid, "offset=%q: want a whole number, not negative", text)
		}
		return do(r, id, tier.Offset(n))
	})
}

// answer writes v, or err where there is one.
func answer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		code := CodeOf(err)
		f := &Error{Code: code, Text: err.Error()}
		if e := (*Error)(nil); errors.As(err, &e) {
			f.Start, f.End = e.Start, e.End
		}
		write(w, code.status(), failure{f})
		return
	}
	write(w, http.StatusOK, v)
}

// write sends v as JSON. A client that went away is nobody's error.
func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = Encode(w, v)
}

// Encode writes v as indented JSON with a newline at its end.
func Encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
