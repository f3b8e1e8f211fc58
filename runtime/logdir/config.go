package logdir

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// Next says how the end of a plain segment is known.
type Next string

// The ways to know where a plain segment ends.
const (
	NextFollowing Next = "following" // at the base of the file that follows; the last one is open
	NextBasePlus1 Next = "base+1"    // one offset a file
	NextBaseSize  Next = "base+size" // offsets count bytes
)

// DefaultPattern is the pattern of a plain source that configures none.
const DefaultPattern = `(?P<base>\d+)\.log`

// groupBase is the group of a plain source's pattern that holds the base offset, in decimal.
const groupBase = "base"

// Config describes one source.
type Config struct {
	// Name is the source's name; for plain sources also the table of the logs at the top.
	Name   string
	Layout tier.Layout
	// Root opens the source's directory. It is called anew for every operation, so that a directory
	// that was unmounted or replaced is noticed.
	Root func() (vfs.Dir, error)
	// LocalDelete is how segments may be deleted; Drop refuses where it is never.
	LocalDelete tier.LocalDelete
	// ReadOnly leaves everything as it is: nothing is dropped, and what an interrupted drop left is
	// shown, and not put right.
	ReadOnly bool
	// Broker is the cluster that deletes. It is needed for delete-records, and not used otherwise.
	Broker Broker
	// Lock is the lock of the source's own program on the directory. It is needed for unlink in the
	// layouts kafka and fluss, and not used otherwise.
	Lock Locker

	// Pattern matches the whole name of a plain file with records; its group "base" is the base
	// offset. Nil means DefaultPattern.
	Pattern *regexp.Regexp
	// Next is how the end of a plain segment is known; empty means NextFollowing.
	Next Next
	// ClosedAfter closes the last plain segment of a log when its mtime is that old. 0 never does;
	// with NextFollowing it must be 0.
	ClosedAfter time.Duration

	// Compacted tells what is known of a Kafka topic beside what the cleaner's checkpoint says: Yes
	// and No overrule it. Nil knows nothing.
	Compacted func(table string) tier.Truth
}

// layout checks c and returns what is particular to its layout.
func (c *Config) layout() (layout, error) {
	switch {
	case c.Name == "":
		return nil, errors.New("name: must not be empty")
	case c.Root == nil:
		return nil, errors.New("root: must not be nil")
	case !slices.Contains([]tier.LocalDelete{tier.LocalDeleteNever, tier.LocalDeleteUnlink,
		tier.LocalDeleteRecords}, c.LocalDelete):
		return nil, fmt.Errorf("local delete %q: want never, unlink or delete-records",
			c.LocalDelete)
	}
	switch c.Layout {
	case tier.LayoutKafka:
		if c.LocalDelete == tier.LocalDeleteUnlink && c.Lock == nil {
			return nil, errors.New("local delete unlink of a kafka source: needs a lock")
		}
		if c.LocalDelete == tier.LocalDeleteRecords && c.Broker == nil {
			return nil, errors.New("local delete delete-records: needs a broker")
		}
		return newKafka(c), nil
	case tier.LayoutFluss:
		switch {
		case c.LocalDelete == tier.LocalDeleteRecords:
			return nil, errors.New("local delete delete-records: only kafka sources have it")
		case c.LocalDelete == tier.LocalDeleteUnlink && c.Lock == nil:
			return nil, errors.New("local delete unlink of a fluss source: needs a lock")
		}
		return newFluss(), nil
	case tier.LayoutPlain:
		if c.LocalDelete == tier.LocalDeleteRecords {
			return nil, errors.New("local delete delete-records: only kafka sources have it")
		}
		return newPlain(c)
	default:
		return nil, fmt.Errorf("layout %q: want kafka, fluss or plain", c.Layout)
	}
}
