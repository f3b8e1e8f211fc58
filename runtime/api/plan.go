package api

import (
	"context"
	"net/http"

	"github.com/tierd/tierd/runtime/tier"
)

// Plan is what would be deleted now, what waits, and what is copied next: GET /api/v1/plan, tierd
// plan.
type Plan struct {
	At           Time   `json:"at"`
	PolicyDigest string `json:"policy_digest"`
	// Digest names the deletions: it changes with what would go, not with time.
	Digest    string                `json:"digest"`
	Totals    List[PlannedTotal]    `json:"totals"`    // ascending by table
	Deletions List[PlannedDeletion] `json:"deletions"` // by log, the oldest first
	Waiting   List[PlannedWait]     `json:"waiting"`
	// CopiesTotal is all that is to be copied, also beyond Copies, which has the first 1000.
	CopiesTotal CopiesTotal       `json:"copies_total"`
	Copies      List[PlannedCopy] `json:"copies"` // in the order in which they begin
	Held        List[HeldCopy]    `json:"held"`   // by plugins, the oldest of each log
	// PluginFaults are why plugins gave no answer when they were last asked. The scores of those that
	// they name are 0 then, and they hold and keep nothing.
	PluginFaults List[Reason] `json:"plugin_faults"`
	// Against is today's plan, where this one is of other policies or a later moment; else null.
	Against *Comparison `json:"against"`
	// Disablement is what the configuration file, as it is now, would let go if it were loaded: the
	// remote data of tables that it turns off with the policy delete. Null where there are none.
	Disablement *Removal `json:"disablement"`
}

// CopiesTotal sums up copies.
type CopiesTotal struct {
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
}

// PlannedCopy is a segment that is to be copied.
type PlannedCopy struct {
	Log     string      `json:"log"`
	Base    tier.Offset `json:"base"`
	Next    tier.Offset `json:"next"`
	Bytes   int64       `json:"bytes"`
	Copying bool        `json:"copying"` // it has begun
	// Scores are what plugins gave it, in configured order: the first one decides, the next ones
	// break ties. Empty where none was asked or answered.
	Scores List[Score] `json:"scores"`
}

// Score is what one plugin gave a segment; the highest is copied first.
type Score struct {
	Plugin string `json:"plugin"`
	Score  int64  `json:"score"`
}

// HeldCopy is a segment that plugins hold back from copying.
type HeldCopy struct {
	Log    string      `json:"log"`
	Base   tier.Offset `json:"base"`
	Next   tier.Offset `json:"next"`
	Reason Reason      `json:"reason"`
}

// PlannedTotal sums up one action of one table. Of orphans Segments counts objects.
type PlannedTotal struct {
	Table    string      `json:"table"`
	Action   tier.Action `json:"action"`
	Segments int64       `json:"segments"`
	Bytes    int64       `json:"bytes"`
}

// PlannedDeletion is a segment that would go, or an object that nothing names.
type PlannedDeletion struct {
	Log     string       `json:"log"`
	Action  tier.Action  `json:"action"`
	Base    tier.Offset  `json:"base"`
	Next    tier.Offset  `json:"next"`
	Bytes   int64        `json:"bytes"`
	Reasons List[Reason] `json:"reasons"`
	// Object is the key of an object that nothing names; null of a segment. Base and Next are 0 then.
	Object *string `json:"object"`
}

// PlannedWait is the oldest segment of a log that stays, or copies and objects that are to go
// later, and why; Base == Next where the reason concerns the whole log.
type PlannedWait struct {
	// Log is "" where the store as a whole is the matter.
	Log    string      `json:"log"`
	Action tier.Action `json:"action"`
	Base   tier.Offset `json:"base"`
	Next   tier.Offset `json:"next"`
	Reason Reason      `json:"reason"`
}

// Plan implements Backend.
func (c *Client) Plan(ctx context.Context) (*Plan, error) {
	return call[Plan](ctx, c, http.MethodGet, "/api/v1/plan", nil)
}

// AcceptClock implements Backend.
func (c *Client) AcceptClock(ctx context.Context) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/api/v1/clock/accept", nil)
	return err
}

func (h *handler) plan(w http.ResponseWriter, r *http.Request) {
	p, err := h.b.Plan(r.Context())
	answer(w, p, err)
}

func (h *handler) acceptClock(w http.ResponseWriter, r *http.Request) {
	answer(w, struct{}{}, h.b.AcceptClock(r.Context()))
}
