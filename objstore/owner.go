package objstore

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tierd/tierd/runtime/tier"
)

// ErrOtherOwner is returned where the store's objects under the ledger id belong to another tierd.
var ErrOtherOwner = errors.New("owned by another tierd")

// ownerBytesMax is the largest owner object that is read, in bytes.
const ownerBytesMax = 64 << 10

// Owner is who writes under a ledger id: one daemon with one ledger. A ledger that was copied
// with its data directory, or moved, has the id but not the owner.
type Owner struct {
	Ledger  string    `json:"ledger"` // its id
	Host    string    `json:"host"`
	DataDir string    `json:"data_dir"` // absolute
	Created tier.Time `json:"created"`  // when it was claimed, nanoseconds since the Unix epoch
}

type ownerDocument struct {
	header
	Owner
}

// Own makes sure that nobody else uses the ledger's id in this bucket: the owner object is made if
// there is none, and must name the same host and data directory otherwise. Where it names others,
// the error wraps ErrOtherOwner; Adopt replaces it.
//
// Stores know no conditional upload, so two that come for the first time at the same moment may
// both succeed. Ids are random, so these two would have to be copies of one ledger that was never
// used; from the second time on one of them is refused.
func (s *Store) Own(ctx context.Context, owner Owner) error {
	if owner.Ledger != s.keys.ledger {
		return fmt.Errorf("owner of the ledger %s: this is the store of %s", owner.Ledger, s.keys.ledger)
	}
	if !utf8.ValidString(owner.Host + owner.DataDir) {
		return fmt.Errorf("owner %q on %q: not valid UTF-8", owner.DataDir, owner.Host)
	}
	err := s.Confirm(ctx, owner)
	if errors.Is(err, tier.ErrVanished) {
		if err := s.putOwner(ctx, owner); err != nil {
			return err
		}
		err = s.Confirm(ctx, owner)
	}
	return err
}

// Confirm is Own where there is an owner object; otherwise the error wraps tier.ErrVanished, and
// none is made.
func (s *Store) Confirm(ctx context.Context, owner Owner) error {
	is, err := s.Owner(ctx)
	if err != nil {
		return err
	}
	if is.Ledger != owner.Ledger || is.Host != owner.Host || is.DataDir != owner.DataDir {
		return fmt.Errorf("%s: %w: %s on %s, since %s; this is %s on %s",
			s.keys.Owner(), ErrOtherOwner, is.DataDir, is.Host, is.Created,
			owner.DataDir, owner.Host)
	}
	return nil
}

// Adopt makes owner the owner of the store's ledger id, whoever it was before. It is for an
// operator who has moved a ledger and knows that the former owner runs no more.
func (s *Store) Adopt(ctx context.Context, owner Owner) error {
	if err := s.putOwner(ctx, owner); err != nil {
		return err
	}
	return s.Own(ctx, owner)
}

// Owner reads the owner object; tier.ErrVanished if there is none.
func (s *Store) Owner(ctx context.Context) (Owner, error) {
	key := s.keys.Owner()
	data, err := s.get(ctx, key, ownerBytesMax)
	if err != nil {
		return Owner{}, err
	}
	var d ownerDocument
	if err := unseal(data, kindOwner, &d); err != nil {
		return Owner{}, fmt.Errorf("%s: %w", key, err)
	}
	return d.Owner, nil
}

func (s *Store) putOwner(ctx context.Context, owner Owner) error {
	data, err := seal(ownerDocument{header{documentVersion, kindOwner}, owner})
	if err != nil {
		return fmt.Errorf("%s: %w", s.keys.Owner(), err)
	}
	return s.putDocument(ctx, s.keys.Owner(), data)
}
