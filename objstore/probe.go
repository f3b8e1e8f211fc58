package objstore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/tierd/tierd/objstore/body"
	"github.com/tierd/tierd/runtime/tier"
)

// Probed is what a probe found: by this machine's clock the object was uploaded between Before and
// After, by the store's at LastModified. Stores give the time of day in whole seconds.
type Probed struct {
	Before, After tier.Time
	LastModified  tier.Time
}

// Probe tries everything that tierd needs of the store on an object of its own under the ledger's
// id: it is uploaded, looked at, read, read in part, listed and deleted, and then must be gone. The
// error names the step. The nonce keeps probes apart: letters, digits, "-" and "_".
func (s *Store) Probe(ctx context.Context, nonce string, now func() tier.Time) (
	p Probed, err error) {
	key, err := s.keys.Probe(nonce)
	if err != nil {
		return Probed{}, err
	}
	content := []byte("tierd probes what it may do here: " + nonce + "\n")
	defer func() {
		if err != nil {
			// Whatever went wrong: the object may be there, and is ours. If deleting it is what
			// failed, the error says so already.
			_ = s.remove(context.WithoutCancel(ctx), key)
		}
	}()

	p.Before = now()
	b := body.New(bytes.NewReader(content), int64(len(content)))
	if err := s.bucket.Upload(ctx, key, b); err != nil {
		return p, s.failed(ctx, "probe: put", key, err)
	}
	p.After = now()
	a, err := s.bucket.Attributes(ctx, key)
	if err == nil && a.Size != int64(len(content)) {
		err = fmt.Errorf("%d bytes, want %d: %w", a.Size, len(content), tier.ErrDamaged)
	}
	if err != nil {
		return p, s.missing(ctx, "probe: stat", key, err)
	}
	if p.LastModified = tier.TimeOf(a.LastModified); p.LastModified <= 0 {
		return p, fmt.Errorf("probe: stat %s: the store gives no time of modification", key)
	}
	if err := s.probeReads(ctx, key, content); err != nil {
		return p, err
	}
	if err := s.remove(ctx, key); err != nil {
		return p, fmt.Errorf("probe: %w", err)
	}
	if ok, err := s.bucket.Exists(ctx, key); err != nil {
		return p, s.failed(ctx, "probe: stat", key, err)
	} else if ok {
		return p, fmt.Errorf("probe: delete %s: it is still there", key)
	}
	return p, nil
}

func (s *Store) probeReads(ctx context.Context, key string, content []byte) error {
	whole, err := s.get(ctx, key, int64(len(content)))
	if err == nil && !bytes.Equal(whole, content) {
		err = fmt.Errorf("get %s: gives %d other bytes: %w", key, len(whole), tier.ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	var part []byte
	r := tier.Range{Base: 6, Next: 12}
	err = s.stream(ctx, key, r, func(got []byte) error {
		part = append(part, got...)
		return nil
	})
	if err == nil && !bytes.Equal(part, content[r.Base:r.Next]) {
		err = fmt.Errorf("get %s: gives other bytes at %s: %w", key, r, tier.ErrDamaged)
	}
	if err != nil {
		return fmt.Errorf("probe: range: %w", err)
	}
	listed := false
	dir := s.keys.ledger + "/probe/"
	err = s.bucket.Iter(ctx, dir, func(name string) error {
		listed = listed || name == key
		return nil
	})
	if err == nil && !listed {
		err = fmt.Errorf("%s, which was just put there, is not in the list", key)
	}
	return s.failed(ctx, "probe: list", dir, err)
}
