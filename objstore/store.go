package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	thanos "github.com/thanos-io/objstore"

	"github.com/tierd/tierd/objstore/body"
	"github.com/tierd/tierd/runtime/tier"
)

// Store keeps the objects of one ledger in a bucket. All methods are safe for concurrent use if
// the bucket's are. Every error names the key.
type Store struct {
	bucket thanos.Bucket
	keys   Keys

	readTimeout time.Duration // of one request of ReadFile
}

// New returns the store of the ledger with the id. It does not look who owns it: whoever writes
// calls Own before.
func New(bucket thanos.Bucket, ledger string) (*Store, error) {
	keys, err := NewKeys(ledger)
	if err != nil {
		return nil, err
	}
	return &Store{bucket: bucket, keys: keys, readTimeout: readTimeout}, nil
}

// Keys makes and reads the keys of the store's objects.
func (s *Store) Keys() Keys { return s.keys }

// PutFile uploads one file of a segment, size bytes of r, as one object, byte for byte, in constant
// memory. Where r has a method DropCache(off, n int64), what was read is dropped from the page
// cache. A file that ends before size is tier.ErrChanged.
//
// After an error the object may be there, whole or in part, now or later; one that wraps
// context.DeadlineExceeded or context.Canceled says explicitly that nothing is known. Nothing is
// deleted: the caller looks.
func (s *Store) PutFile(ctx context.Context, k tier.ObjectKey, r io.ReaderAt, size int64) error {
	key, err := s.keys.File(k)
	if err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("put %s: %d bytes", key, size)
	}
	b := body.New(body.DropBehind(r, size), size)
	return s.failed(ctx, "put", key, b.Blame(s.bucket.Upload(ctx, key, b)))
}

// PutFact writes the manifest entry of one fact.
func (s *Store) PutFact(ctx context.Context, log tier.LogID, attempt tier.AttemptID,
	f tier.Fact) error {
	_, _, err := s.putFact(ctx, log, attempt, f)
	return err
}

// ProveFact is PutFact, and reads the entry back: it is there just as it was written, or the error
// is tier.ErrVanished or tier.ErrDamaged.
func (s *Store) ProveFact(ctx context.Context, log tier.LogID, attempt tier.AttemptID,
	f tier.Fact) error {
	key, want, err := s.putFact(ctx, log, attempt, f)
	if err != nil {
		return err
	}
	got, err := s.get(ctx, key, entryBytesMax)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%s: is not what was written: %w", key, tier.ErrDamaged)
	}
	return err
}

// putFact writes an entry, and returns its key and bytes.
func (s *Store) putFact(ctx context.Context, log tier.LogID, attempt tier.AttemptID,
	f tier.Fact) (key string, data []byte, err error) {
	if key, err = s.keys.Entry(log, f.Position, attempt); err != nil {
		return "", nil, err
	}
	if data, err = encodeEntry(s.keys.ledger, log, attempt, f); err != nil {
		return "", nil, fmt.Errorf("put %s: %w", key, err)
	}
	return key, data, s.putDocument(ctx, key, data)
}

// Fact reads one manifest entry back and checks it.
func (s *Store) Fact(ctx context.Context, log tier.LogID, pos tier.Position,
	attempt tier.AttemptID) (tier.Fact, error) {
	key, err := s.keys.Entry(log, pos, attempt)
	if err != nil {
		return tier.Fact{}, err
	}
	return s.readEntry(ctx, key, Key{Kind: KeyEntry, Log: log, Position: pos, Attempt: attempt})
}

// Checkpoint reads one manifest checkpoint back and checks it. Size is that of the object,
// in bytes.
func (s *Store) Checkpoint(ctx context.Context, log tier.LogID, level uint8, block uint64) (
	facts []tier.Fact, size int64, err error) {
	key, err := s.keys.Checkpoint(log, level, block)
	if err != nil {
		return nil, 0, err
	}
	return s.readCheckpoint(ctx, key, Key{Kind: KeyCheckpoint, Log: log, Level: level, Block: block})
}

// PutCheckpoint writes the manifest checkpoint of the block at the level, which stands for the
// positions [block*64^level, (block+1)*64^level): facts are all that hold among them. The same
// facts give the same bytes, so it can be repeated.
func (s *Store) PutCheckpoint(ctx context.Context, log tier.LogID, level uint8, block uint64,
	facts []tier.Fact) error {
	key, err := s.keys.Checkpoint(log, level, block)
	if err != nil {
		return err
	}
	data, err := encodeCheckpoint(s.keys.ledger, log, level, block, facts)
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return s.putDocument(ctx, key, data)
}

func (s *Store) putDocument(ctx context.Context, key string, data []byte) error {
	b := body.New(bytes.NewReader(data), int64(len(data)))
	err := s.bucket.Upload(ctx, key, b, thanos.WithContentType("application/json"))
	return s.failed(ctx, "put", key, err)
}

// readEntry reads the entry at key, which is k taken together.
func (s *Store) readEntry(ctx context.Context, key string, k Key) (tier.Fact, error) {
	data, err := s.get(ctx, key, entryBytesMax)
	if err != nil {
		return tier.Fact{}, err
	}
	f, err := decodeEntry(data, s.keys.ledger, k)
	if err != nil {
		return tier.Fact{}, fmt.Errorf("%s: %w", key, err)
	}
	return f, nil
}

// readCheckpoint reads the checkpoint at key, which is k taken together.
func (s *Store) readCheckpoint(ctx context.Context, key string, k Key) (facts []tier.Fact,
	size int64, err error) {
	data, err := s.get(ctx, key, checkpointBytesMax)
	if err != nil {
		return nil, 0, err
	}
	size = int64(len(data))
	if facts, err = decodeCheckpoint(data, s.keys.ledger, k); err != nil {
		return nil, size, fmt.Errorf("%s: %w", key, err)
	}
	return facts, size, nil
}

// get reads a whole object of at most bytesMax bytes.
func (s *Store) get(ctx context.Context, key string, bytesMax int64) ([]byte, error) {
	r, err := s.bucket.Get(ctx, key)
	if err != nil {
		return nil, s.missing(ctx, "get", key, err)
	}
	data, err := io.ReadAll(io.LimitReader(r, bytesMax+1))
	if err := join(err, r.Close()); err != nil {
		return nil, s.missing(ctx, "get", key, err)
	}
	if int64(len(data)) > bytesMax {
		return nil, fmt.Errorf("get %s: more than %d bytes: %w", key, bytesMax, tier.ErrDamaged)
	}
	return data, nil
}

// missing is failed for calls that need the object: one that is not there is tier.ErrVanished.
func (s *Store) missing(ctx context.Context, op, key string, err error) error {
	if s.bucket.IsObjNotFoundErr(err) {
		return fmt.Errorf("%s %s: %w: %w", op, key, tier.ErrVanished, once(key, err))
	}
	return s.failed(ctx, op, key, err)
}

// failed names the key. An error after the end of ctx says so, whatever the client made of it.
func (s *Store) failed(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		err = join(cause, err)
	}
	return fmt.Errorf("%s %s: %w", op, key, once(key, err))
}

// once is err without what a client says of the key, as "open /bucket/KEY: ", which its caller
// says already.
func once(key string, err error) error {
	text := err.Error()
	at := strings.Index(text, key+": ")
	if at < 0 {
		return err
	}
	begin := 0
	if i := strings.LastIndex(text[:at], ": "); i >= 0 {
		begin = i + len(": ")
	}
	return once(key, &reworded{err, text[:begin] + text[at+len(key)+len(": "):]})
}

// reworded is an error in other words.
type reworded struct {
	error
	text string
}

func (r *reworded) Error() string { return r.text }

// Unwrap gives the error.
func (r *reworded) Unwrap() error { return r.error }

// join joins two errors in one line. A single one stays as it is: buckets know only their own.
func join(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w: %w", a, b)
}
