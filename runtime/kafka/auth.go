package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// plain is the one mechanism (RFC 4616). Its password goes over the wire as it is: it wants TLS.
const plain = "PLAIN"

// handshake agrees on the mechanism. After version 0 the client's next frame is the login itself,
// without a header (KIP-43). Clients that would use version 1 look for version 0 too, and take a
// broker without it for one that knows no login.
func (c *conn) handshake(_ context.Context, h header, req *kmsg.SASLHandshakeRequest) (*answer,
	error) {
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	switch {
	case c.s.cfg.Authenticate == nil || c.open:
		resp.ErrorCode = kerr.IllegalSaslState.Code
	case req.Mechanism != plain:
		resp.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		resp.SupportedMechanisms = []string{plain}
	default:
		resp.SupportedMechanisms = []string{plain}
		c.mechanism, c.bare = h.version > 0, h.version == 0
	}
	return c.encode(h, resp, resp.IsFlexible()), nil
}

// authenticate lets a user in who knows the password. After a wrong one the connection ends.
func (c *conn) authenticate(ctx context.Context, h header, req *kmsg.SASLAuthenticateRequest) (
	*answer, error) {
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	if !c.mechanism || c.open {
		resp.ErrorCode = kerr.IllegalSaslState.Code
		a := c.encode(h, resp, resp.IsFlexible())
		a.last, a.err = true, errors.New("a login before a mechanism was agreed on, or twice")
		return a, nil
	}
	user, err := c.login(ctx, req.SASLAuthBytes)
	if err == nil {
		c.open = true
		return c.encode(h, resp, resp.IsFlexible()), nil
	}
	resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
	text := "user or password is wrong"
	resp.ErrorMessage = &text
	a := c.encode(h, resp, resp.IsFlexible())
	a.last, a.err = true, fmt.Errorf("login of %.64q: %w", user, err)
	return a, nil
}

// bareLogin answers a login without a header: with nothing but a size, or by the connection's end.
func (c *conn) bareLogin(ctx context.Context, message []byte) (*answer, error) {
	c.bare = false
	user, err := c.login(ctx, message)
	if err != nil {
		return nil, fmt.Errorf("login of %.64q: %w", user, err)
	}
	c.open = true
	return &answer{pieces: [][]byte{{}}, seen: Request{API: kmsg.SASLAuthenticate.Name()}}, nil
}

// login checks a message of PLAIN: authorization id, user and password, with a zero byte before
// each of the last two.
func (c *conn) login(ctx context.Context, message []byte) (user string, err error) {
	parts := bytes.Split(message, []byte{0})
	if len(parts) != 3 {
		return "", errors.New("the message is not that of PLAIN")
	}
	user = string(parts[1])
	if id := string(parts[0]); id != "" && id != user {
		return user, errors.New("it wants to act as somebody else")
	}
	wait, cancel := context.WithTimeout(ctx, c.s.cfg.Limits.Frame)
	defer cancel()
	if err := c.s.logins.Acquire(wait, 1); err != nil {
		return user, errors.New("too many logins at one time")
	}
	defer c.s.logins.Release(1)
	if !c.s.cfg.Authenticate(user, string(parts[2])) {
		return user, errors.New("user or password is wrong")
	}
	return user, nil
}
