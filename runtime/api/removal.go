package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/tierd/tierd/runtime/tier"
)

// Removal is what leaves the store for good because a table is dropped, or because its tiering is
// turned off with the policy delete: GET /api/v1/tables/TABLE/drop, tierd drop TABLE.
type Removal struct {
	Cause tier.MoveCause `json:"cause"` // dropped or disabled
	// Digest names the ledger and each copy of each table that would go. Whoever gives it back
	// accepts the removal of these, and of nothing else.
	Digest string          `json:"digest"`
	Tables List[LeftTable] `json:"tables"` // ascending by name
	// GraceSeconds is how long readers have before the first object goes.
	GraceSeconds int64 `json:"grace_seconds"`
}

// LeftTable is what of a removal belongs to one table.
type LeftTable struct {
	Table    string `json:"table"`
	Logs     int64  `json:"logs"`     // that have anything in the store
	Segments int64  `json:"segments"` // in the store
	Bytes    int64  `json:"bytes"`
	// OnlyRemote are those of which no local segment is left.
	OnlyRemote Amount `json:"only_remote"`
}

// Amount is a number of segments and their bytes.
type Amount struct {
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// DropPlan implements Backend.
func (c *Client) DropPlan(ctx context.Context, table string) (*Removal, error) {
	return call[Removal](ctx, c, http.MethodGet, tablePath(table, "drop"), nil)
}

// Drop implements Backend.
func (c *Client) Drop(ctx context.Context, table, accept string) (*Removal, error) {
	return call[Removal](ctx, c, http.MethodPost, tablePath(table, "drop"),
		url.Values{"accept": {accept}})
}

func tablePath(table, verb string) string {
	return "/api/v1/tables/" + url.PathEscape(table) + "/" + verb
}

// drop serves /api/v1/tables/TABLE/drop: what would go, or with POST the drop itself.
func (h *handler) drop(w http.ResponseWriter, r *http.Request, table string) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		v, err := h.b.DropPlan(r.Context(), table)
		answer(w, v, err)
	case http.MethodPost:
		v, err := h.b.Drop(r.Context(), table, r.URL.Query().Get("accept"))
		answer(w, v, err)
	default:
		w.Header().Set("Allow", "GET, POST")
		write(w, http.StatusMethodNotAllowed, failure{Errorf(CodeInvalid, "use GET or POST")})
	}
}
