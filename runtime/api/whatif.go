package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/tierd/tierd/runtime/tier"
)

// whatIfBytesMax bounds a question: policies and data as text.
const whatIfBytesMax = 64 << 20

// WhatIf asks what other policies, or a later moment, would delete: POST /api/v1/plan/compare.
type WhatIf struct {
	// At is the moment, not before now; null is now.
	At Time `json:"at"`
	// Policies are asked instead of those in force; null asks those.
	Policies *Policies `json:"policies"`
}

// Policies are the user's policies and their data, as a configuration would name them.
type Policies struct {
	Modules List[PolicyModule] `json:"modules"`
	Data    map[string]any     `json:"data"` // data.* in policies
}

// PolicyModule is one *.rego file.
type PolicyModule struct {
	Path   string `json:"path"` // as reasons and errors shall name it
	Source string `json:"source"`
}

// Comparison is a plan beside that of today.
type Comparison struct {
	// At, PolicyDigest, Digest and Totals are those of today's plan.
	At           Time               `json:"at"`
	PolicyDigest string             `json:"policy_digest"`
	Digest       string             `json:"digest"`
	Totals       List[PlannedTotal] `json:"totals"`
	// Differences are by table and action; none where both plans delete the same.
	Differences List[PlannedDifference] `json:"differences"`
	// More would go, and not today; its reasons are why. Less would go today, and not then; its
	// reasons are why it stays.
	More List[PlannedDeletion] `json:"more"`
	Less List[PlannedDeletion] `json:"less"`
}

// PlannedDifference sums up how much more, and how much less, one action would take of a table.
type PlannedDifference struct {
	Table        string      `json:"table"`
	Action       tier.Action `json:"action"`
	MoreSegments int64       `json:"more_segments"`
	MoreBytes    int64       `json:"more_bytes"`
	LessSegments int64       `json:"less_segments"`
	LessBytes    int64       `json:"less_bytes"`
	// Rules are those that make the difference. A segment counts at each of its rules.
	Rules List[PlannedRule] `json:"rules"`
}

// PlannedRule is what one rule takes, or keeps from going.
type PlannedRule struct {
	Verdict  Verdict   `json:"verdict"` // delete: more goes by it; keep: less does
	Code     tier.Code `json:"code"`
	Rule     *string   `json:"rule"`  // file:line; null where no rule decided
	Title    *string   `json:"title"` // null where no annotation has one
	Segments int64     `json:"segments"`
	Bytes    int64     `json:"bytes"`
}

// Compare implements Backend.
func (c *Client) Compare(ctx context.Context, q *WhatIf) (*Plan, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	return send[Plan](ctx, c, http.MethodPost, "/api/v1/plan/compare", bytes.NewReader(body))
}

func (h *handler) compare(w http.ResponseWriter, r *http.Request) {
	q, err := readWhatIf(http.MaxBytesReader(w, r.Body, whatIfBytesMax))
	if err != nil {
		answer(w, nil, Errorf(CodeInvalid, "the question: %v", err))
		return
	}
	p, err := h.b.Compare(r.Context(), q)
	answer(w, p, err)
}

// readWhatIf reads the one JSON object of a question. Numbers of data keep their digits.
func readWhatIf(r io.Reader) (*WhatIf, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	d.UseNumber()
	q := &WhatIf{}
	if err := d.Decode(q); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return q, nil
}
