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

// Scrub is how the store is read back, from end to end, to see whether it still has everything.
type Scrub struct {
	Every          time.Duration // the time for one pass over everything; 0 is off
	BytesPerSecond int64         // that it reads at most; 0 is unlimited
}

func defaultRead() Read { return Read{CacheBytes: 1 << 30, CacheAge: time.Hour} }

func defaultScrub() Scrub { return Scrub{BytesPerSecond: 8 << 20} }

func (d *decoder) readRead(r *Read) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.object(n, " in read", []field{
			{"cache_bytes", value(d, "cache_bytes", &r.CacheBytes, size(0))},
			{"cache_age", value(d, "cache_age", &r.CacheAge, duration(0))},
		})
	}
}

func (d *decoder) readScrub(s *Scrub) func(*yaml.Node) {
	return func(n *yaml.Node) {
		d.object(n, " in scrub", []field{
			{"every", value(d, "every", &s.Every, duration(0))},
			{"bytes_per_second", value(d, "bytes_per_second", &s.BytesPerSecond, size(0))},
		})
	}
}

func (r Read) print() *yaml.Node {
	return mapping("cache_bytes", bytesNode(r.CacheBytes), "cache_age", durationNode(r.CacheAge))
}

func (s Scrub) print() *yaml.Node {
	return mapping("every", durationNode(s.Every), "bytes_per_second", bytesNode(s.BytesPerSecond))
}
