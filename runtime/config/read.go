package config

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// Read bounds what reading the archive takes.
type Read struct {
	CacheBytes int64         // of chunks of objects on disk; 0 keeps them in memory alone
	CacheAge   time.Duration // how long a chunk is kept; 0 is as long as there is room
}

func defaultRead() Read { return Read{CacheBytes: 1 << 30, CacheAge: time.Hour} }

func (d *decoder) readRead(r *Read) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.object(n, " in read", []field{
			{"cache_bytes", value(d, "cache_bytes", &r.CacheBytes, size(0))},
			{"cache_age", value(d, "cache_age", &r.CacheAge, duration(0))},
		})
	}
}

func (r Read) print() *yaml.Node {
	return mapping("cache_bytes", bytesNode(r.CacheBytes), "cache_age", durationNode(r.CacheAge))
}
