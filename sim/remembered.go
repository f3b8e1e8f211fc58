package sim

import (
	"crypto/sha256"
	"sync"

	"github.com/tierd/tierd/policies/gate"
	"github.com/tierd/tierd/policies/rego"
)

// remembered is what policies said, by the whole of what they were asked. Policies are a function
// of that: they have no network, no clock but the one in their input, and nothing random. So many
// histories that ask the same have one evaluation.
type remembered struct {
	mu sync.Mutex
	of map[asking]rego.Evaluation
}

// asking is a question to policies, by the SHA-256 of its input.
type asking struct {
	set   *rego.Set
	input [sha256.Size]byte
}

// rememberedMax bounds how many are kept: about a kilobyte each.
const rememberedMax = 100_000

func newRemembered() *remembered {
	return &remembered{of: map[asking]rego.Evaluation{}}
}

// evaluate asks the policies what is not known. Errors, and answers to what is not all known, are
// never kept.
func (r *remembered) evaluate(set *rego.Set, f *gate.Facts,
	ask func() (rego.Evaluation, error)) (rego.Evaluation, error) {
	if r == nil || len(f.Unknown) > 0 {
		return ask()
	}
	input, err := rego.InputJSON(f)
	if err != nil {
		return ask()
	}
	key := asking{set, sha256.Sum256(input)}
	r.mu.Lock()
	e, known := r.of[key]
	r.mu.Unlock()
	if known {
		return e, nil
	}
	if e, err = ask(); err != nil {
		return e, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.of) >= rememberedMax {
		clear(r.of)
	}
	r.of[key] = e
	return e, nil
}
