package kafka

import "sync"

// connBytes is what every connection may have under way without asking anybody.
const connBytes = 64 << 10

// pool is memory that connections share. It is safe for concurrent use.
type pool struct {
	mu   sync.Mutex
	free int64
}

// take takes up to want bytes beyond connBytes, and gives how many of want the caller may hold.
// No one gets more than a quarter of what is left, so that the last one to come gets some too.
func (p *pool) take(want int64) (granted, taken int64) {
	if want <= connBytes {
		return want, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	taken = min(want-connBytes, max(p.free, 0)/4)
	p.free -= taken
	return connBytes + taken, taken
}

// more takes n bytes if they are free. Of what is larger than all there is, it takes all.
func (p *pool) more(n, all int64) (taken int64, ok bool) {
	n = min(n, all)
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > p.free {
		return 0, false
	}
	p.free -= n
	return n, true
}

// give gives bytes back.
func (p *pool) give(n int64) {
	p.mu.Lock()
	p.free += n
	p.mu.Unlock()
}
