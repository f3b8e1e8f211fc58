package api

import (
	"context"
	"net/http"

	"github.com/tierd/tierd/runtime/tier"
)

// Plan is what would be deleted now, and what waits: GET /api/v1/plan, tierd plan.
type Plan struct {
	At           Time   `json:"at"`
	PolicyDigest string `json:"policy_digest"`
	// Digest names the deletions: it changes with what would go, not with time.
	Digest    string                `json:"digest"`
	Totals    List[PlannedTotal]    `json:"totals"`    // ascending by table
	Deletions List[PlannedDeletion] `json:"deletions"` // by log, the oldest first
	Waiting   List[PlannedWait]     `json:"waiting"`
	// Against is today's plan, where this one is of other policies or a later moment; else null.
	Against *Comparison `json:"against"`
}

// PlannedTotal sums up one action of one table.
type PlannedTotal struct {
	Table    string      `json:"table"`
	Action   tier.Action `json:"action"`
	Segments int64       `json:"segments"`
	Bytes    int64       `json:"bytes"`
}

// PlannedDeletion is a segment that would go.
type PlannedDeletion struct {
	Log     string       `json:"log"`
	Action  tier.Action  `json:"action"`
	Base    tier.Offset  `json:"base"`
	Next    tier.Offset  `json:"next"`
	Bytes   int64        `json:"bytes"`
	Reasons List[Reason] `json:"reasons"`
}

// PlannedWait is the oldest segment of a log that stays, and why; Base == Next where the reason
// concerns the whole log.
type PlannedWait struct {
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
