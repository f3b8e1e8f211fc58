package read

import "context"

// aheadQueue bounds how many requests to read ahead wait; more are dropped.
const aheadQueue = 64

// ahead is a request to read chunks of an object before somebody asks for them.
type ahead struct {
	object      object
	first, last int64 // chunks
}

// readAhead asks for the chunks behind the byte pos, of a remote file.
func (f *segfile) readAhead(pos int64) {
	if f.file != nil || f.r.c.Ahead <= 0 || pos >= f.size {
		return
	}
	first := pos/f.object.chunk + 1
	last := min(first+int64(f.r.c.Ahead), f.object.chunks()) - 1
	if first > last {
		return
	}
	select {
	case f.r.ahead <- ahead{f.object, first, last}:
	default: // whoever asks for it reads it
	}
}

// Run reads ahead until ctx ends. Several may run.
func (r *Reader) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-r.ahead:
			for n := a.first; n <= a.last && ctx.Err() == nil; n++ {
				// What cannot be read now is read, and told, when it is asked for.
				if _, err := r.c.Cache.get(ctx, a.object, n, n); err != nil {
					break
				}
			}
		}
	}
}
