package fault

import (
	"bytes"
	"fmt"
	"net/http"
)

// StatusError is the answer of a store that refuses a request for now.
type StatusError struct{ Code int }

// Error gives code and text, such as "503 Service Unavailable".
func (e StatusError) Error() string { return fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code)) }

// Nth has Effect befall the N-th call from now on, counted from 0, and no other. Sweeps run N = 0,
// 1, ... until Fired is false: then every call has failed once.
type Nth struct {
	N      int
	Effect Effect
	seen   int
}

// Hook is the hook of the sweep; it is for one goroutine.
func (n *Nth) Hook(Op) Effect {
	n.seen++
	if n.seen-1 == n.N {
		return n.Effect
	}
	return Effect{}
}

// Fired tells whether the n-th call came.
func (n *Nth) Fired() bool { return n.seen > n.N }

// Storm has the next n calls refused with an HTTP status, 429 and 503 by turns. It is for one
// goroutine.
func Storm(n int) Hook {
	return func(Op) Effect {
		if n--; n < 0 {
			return Effect{}
		}
		code := http.StatusServiceUnavailable
		if n%2 == 0 {
			code = http.StatusTooManyRequests
		}
		return Effect{Err: StatusError{code}}
	}
}

// On has e befall all calls of one kind.
func On(kind OpKind, e Effect) Hook {
	return func(op Op) Effect {
		if op.Kind == kind {
			return e
		}
		return Effect{}
	}
}

// Cut leaves the first n bytes.
func Cut(n int) func([]byte) []byte {
	return func(data []byte) []byte { return data[:min(n, len(data))] }
}

// Pad adds n zero bytes.
func Pad(n int) func([]byte) []byte {
	return func(data []byte) []byte { return append(bytes.Clone(data), make([]byte, n)...) }
}

// Flip inverts the lowest bit of byte i, counted from the end if i is negative; where there is no
// such byte it changes nothing.
func Flip(i int) func([]byte) []byte {
	return func(data []byte) []byte {
		data = bytes.Clone(data)
		at := i
		if at < 0 {
			at += len(data)
		}
		if at >= 0 && at < len(data) {
			data[at] ^= 1
		}
		return data
	}
}
