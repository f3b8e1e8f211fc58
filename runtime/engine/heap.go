package engine

import (
	"github.com/tierd/tierd/runtime/tier"
)

// queue is a binary heap of logs, the smallest key first; ties go by log id, so that the order
// never depends on history. slot remembers where in the heap a log sits.
type queue struct {
	items []*logIndex
	first func(a, b *logIndex) int // compared before the key; nil where the key alone decides
	key   func(*logIndex) tier.Time
	slot  func(*logIndex) *int // one past the position; 0 when not queued
}

func (q *queue) len() int { return len(q.items) }

func (q *queue) head() *logIndex {
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

// fix puts l where its key says, adding it if it is not queued.
func (q *queue) fix(l *logIndex) {
	if *q.slot(l) == 0 {
		q.items = append(q.items, l)
		*q.slot(l) = len(q.items)
	}
	i := *q.slot(l) - 1
	if !q.up(i) {
		q.down(i)
	}
}

// remove takes l out, if it is queued.
func (q *queue) remove(l *logIndex) {
	i := *q.slot(l) - 1
	if i < 0 {
		return
	}
	last := len(q.items) - 1
	q.swap(i, last)
	q.items = q.items[:last]
	*q.slot(l) = 0
	if i < last && !q.up(i) {
		q.down(i)
	}
}

func (q *queue) less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	if q.first != nil {
		if c := q.first(a, b); c != 0 {
			return c < 0
		}
	}
	if ka, kb := q.key(a), q.key(b); ka != kb {
		return ka < kb
	}
	return a.id.Compare(b.id) < 0
}

func (q *queue) swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	*q.slot(q.items[i]) = i + 1
	*q.slot(q.items[j]) = j + 1
}

func (q *queue) up(i int) (moved bool) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			break
		}
		q.swap(i, parent)
		i, moved = parent, true
	}
	return moved
}

func (q *queue) down(i int) {
	for {
		small := 2*i + 1
		if small >= len(q.items) {
			return
		}
		if right := small + 1; right < len(q.items) && q.less(right, small) {
			small = right
		}
		if !q.less(small, i) {
			return
		}
		q.swap(i, small)
		i = small
	}
}
