package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Sizes in bytes.
const (
	// smallFrame is a request that needs no room of the shared one: what it decodes to is at most
	// smallFrame times decodedFactor, on each connection.
	smallFrame = 4 << 10
	// loginFrameMax bounds the requests of clients that have not logged in.
	loginFrameMax = 16 << 10
	// writePiece is what has to be taken within Limits.Write.
	writePiece = 64 << 10
)

// decodedFactor is how much larger than its bytes a decoded request can be: an array claims one
// byte for each element, and the elements of some have about a hundred bytes.
const decodedFactor = 32

// conn is one connection. It is used by one goroutine.
type conn struct {
	s    *Server
	nc   net.Conn
	open bool // the client has logged in, or need not
	// mechanism is set once the client has agreed to log in by PLAIN.
	mechanism bool
	bare      bool // it has agreed so, and what comes next is the login without a header
	size      [4]byte
}

// answer is a response on its way out.
type answer struct {
	pieces  [][]byte // without the size in front
	release func()   // gives back what the answer holds; nil if nothing
	seen    Request
	last    bool // the connection ends after it
	err     error
}

// serve reads, answers and writes until something ends it.
func (c *conn) serve(ctx context.Context) error {
	limits := &c.s.cfg.Limits
	for ctx.Err() == nil {
		wait := limits.Idle
		if !c.open {
			wait = limits.Frame
		}
		n, err := c.next(wait)
		if err != nil {
			return err
		}
		if err := c.one(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// next waits for a request and gives its size.
func (c *conn) next(wait time.Duration) (int, error) {
	if err := c.nc.SetReadDeadline(c.s.cfg.Now().Add(wait)); err != nil {
		return 0, errClientLeft
	}
	got, err := io.ReadAtLeast(c.nc, c.size[:], 1)
	if got > 0 && got < len(c.size) { // it has begun, and must not take its time from here on
		if wait = c.s.cfg.Limits.Frame; c.nc.SetReadDeadline(c.s.cfg.Now().Add(wait)) != nil {
			return 0, errClientLeft
		}
		_, err = io.ReadFull(c.nc, c.size[got:])
	}
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded) && got == 0 && c.open:
		return 0, errClientLeft // idle for long: brokers end such connections too
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, fmt.Errorf("no whole request within %v", wait)
	case tlsTrouble(err):
		return 0, err
	default:
		return 0, errClientLeft
	}
	n := int(int32(binary.BigEndian.Uint32(c.size[:])))
	most := c.s.cfg.Limits.RequestBytesMax
	if !c.open {
		most = min(most, loginFrameMax)
	}
	least := headerBytes
	if c.bare {
		least = 0
	}
	if n < least || n > most {
		return 0, fmt.Errorf("a request of %d bytes, where %d to %d are allowed%s", n, least, most,
			looksLike(c.size))
	}
	return n, nil
}

// looksLike names what else speaks to a port that it took for its own.
func looksLike(size [4]byte) string {
	switch {
	case size[0] == 0x16 && size[1] == 0x03:
		return ": the client speaks TLS, and this endpoint does not"
	case string(size[:]) == "GET " || string(size[:]) == "POST" || string(size[:]) == "HEAD":
		return ": the client speaks HTTP"
	}
	return ""
}

// tlsTrouble tells a handshake that went wrong from a client that left.
func tlsTrouble(err error) bool {
	var record tls.RecordHeaderError
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &verify) || errors.As(err, &alert)
}

// one reads the request of n bytes, answers it, and writes the answer.
func (c *conn) one(ctx context.Context, n int) error {
	limits := &c.s.cfg.Limits
	if n > smallFrame {
		weight := min(int64(n)*decodedFactor, limits.RequestsBytesMax)
		wait, cancel := context.WithTimeout(ctx, limits.Frame)
		err := c.s.requests.Acquire(wait, weight)
		cancel()
		if err != nil {
			return fmt.Errorf("no room for a request of %d bytes within %v", n, limits.Frame)
		}
		defer c.s.requests.Release(weight)
	}
	frame := make([]byte, n)
	if err := c.nc.SetReadDeadline(c.s.cfg.Now().Add(limits.Frame)); err != nil {
		return errClientLeft
	}
	if got, err := io.ReadFull(c.nc, frame); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%d of the %d bytes of a request within %v", got, n, limits.Frame)
		}
		return errClientLeft
	}
	a, err := c.answer(ctx, frame)
	if err != nil {
		return err
	}
	if a.release != nil {
		defer a.release()
	}
	if a.pieces != nil {
		if err := c.write(a); err != nil {
			return err
		}
		c.s.cfg.Observe(a.seen)
	}
	if a.last {
		if a.err == nil {
			a.err = errClientLeft
		}
		return a.err
	}
	return nil
}

// write writes an answer.
func (c *conn) write(a *answer) error {
	total := 0
	for _, p := range a.pieces {
		total += len(p)
	}
	a.seen.Bytes = int64(total)
	binary.BigEndian.PutUint32(c.size[:], uint32(total))
	rest := append(net.Buffers{c.size[:]}, a.pieces...)
	if _, ok := c.nc.(*tls.Conn); !ok {
		return c.flush(rest)
	}
	// After a deadline nothing more can be written over TLS: each piece has its own.
	for _, p := range rest {
		for ; len(p) > 0; p = p[min(len(p), writePiece):] {
			if err := c.flush(net.Buffers{p[:min(len(p), writePiece)]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush writes all of rest. As long as the client takes a piece within its time, it goes on.
func (c *conn) flush(rest net.Buffers) error {
	limits := &c.s.cfg.Limits
	for {
		if err := c.nc.SetWriteDeadline(c.s.cfg.Now().Add(limits.Write)); err != nil {
			return errClientLeft
		}
		n, err := rest.WriteTo(c.nc)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return errClientLeft
		case n < writePiece:
			return fmt.Errorf("the client took %d bytes within %v, less than %d", n, limits.Write,
				writePiece)
		}
	}
}

// answer decodes a request and answers it. An error ends the connection without an answer, as
// brokers do where nothing can be said that the client would understand.
func (c *conn) answer(ctx context.Context, frame []byte) (*answer, error) {
	if c.bare {
		return c.bareLogin(ctx, frame)
	}
	h, err := parseHeader(frame)
	if err != nil {
		return nil, err
	}
	a, known := c.s.apis[h.key]
	switch {
	case !known && kmsg.RequestForKey(h.key) == nil:
		return nil, fmt.Errorf("a request of kind %d, which does not exist", h.key)
	case !known:
		return nil, fmt.Errorf("%s, which is not listed here", kmsg.NameForKey(h.key))
	case h.key == keyAPIVersions && !a.has(h.version):
		// Version 0 is what every client understands (KIP-511).
		return c.encode(h, c.s.versions(0, kerr.UnsupportedVersion.Code), false), nil
	case !a.has(h.version):
		return nil, fmt.Errorf("version %d of %s, where %d to %d are listed", h.version,
			kmsg.NameForKey(h.key), a.min, a.max)
	case !c.open && !a.login:
		return nil, fmt.Errorf("%s before a login", kmsg.NameForKey(h.key))
	}
	req := kmsg.RequestForKey(h.key)
	req.SetVersion(h.version)
	body, err := skipClient(frame, req.IsFlexible())
	if err == nil && req.ReadFrom(body) != nil {
		// The library says the same of every error, and speaks of responses.
		err = errors.New("the request ends within a field, or claims more than it has")
	}
	if err != nil {
		return nil, fmt.Errorf("%s v%d: %w", kmsg.NameForKey(h.key), h.version, err)
	}
	return a.handle(c, ctx, h, req)
}

// encode makes the answer of a response.
func (c *conn) encode(h header, resp kmsg.Response, flexible bool) *answer {
	head := responseHeader(make([]byte, 0, 256), h, flexible)
	return &answer{pieces: [][]byte{resp.AppendTo(head)}, seen: c.seen(h, firstCode(resp))}
}

// seen is what Observe hears of a request.
func (c *conn) seen(h header, code int16) Request {
	return Request{API: kmsg.NameForKey(h.key), Version: h.version, Code: codeName(code)}
}

// codeName is Kafka's name of an error code.
func codeName(code int16) string {
	if code == 0 {
		return ""
	}
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "UNKNOWN_SERVER_ERROR"
}

// responseHeader appends what stands before every response; ApiVersions never has tags there,
// since a client reads it before it knows the broker (KIP-511).
func responseHeader(dst []byte, h header, flexible bool) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.correlation))
	if flexible && h.key != keyAPIVersions {
		dst = append(dst, 0)
	}
	return dst
}

// serverName is the name that a TLS client asked for; empty without TLS.
func serverName(nc net.Conn) string {
	if t, ok := nc.(*tls.Conn); ok {
		return t.ConnectionState().ServerName
	}
	return ""
}
