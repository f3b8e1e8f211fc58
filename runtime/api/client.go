package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/tierd/tierd/runtime/tier"
)

// answerBytesMax bounds what a client reads of one answer.
const answerBytesMax = 1 << 30

// Client asks a running daemon through its socket. It is a Backend, so that a command need not
// know whether it talks to a daemon.
type Client struct{ http *http.Client }

var _ Backend = (*Client)(nil)

// ErrNoDaemon is returned by Dial where nobody listens on the socket.
var ErrNoDaemon = errors.New("no daemon runs")

// Dial returns a client of the daemon that listens on the unix socket, and ErrNoDaemon where none
// does. Any other error means that one may run and cannot be asked.
func Dial(ctx context.Context, socket string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, ErrNoDaemon
	case err != nil:
		return nil, Errorf(CodeUnavailable, "ask the daemon: %v", tooLong(socket, err))
	}
	if err := conn.Close(); err != nil {
		return nil, Errorf(CodeUnavailable, "ask the daemon: %v", err)
	}
	return NewClient(socket), nil
}

// NewClient returns a client of the daemon that listens on the unix socket. It connects with the
// first request; an error is then CodeUnavailable.
func NewClient(socket string) *Client {
	var d net.Dialer
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{&http.Client{Transport: &http.Transport{DialContext: dial}}}
}

// Close gives the connections back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Health implements Backend.
func (c *Client) Health(ctx context.Context) (*Health, error) {
	return call[Health](ctx, c, http.MethodGet, "/-/ready", nil)
}

// Status implements Backend.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/api/v1/status", nil)
}

// Segments implements Backend.
func (c *Client) Segments(ctx context.Context, log tier.LogID) (*Listing, error) {
	return call[Listing](ctx, c, http.MethodGet, logPath(log, "segments"), nil)
}

// Copies implements Backend.
func (c *Client) Copies(ctx context.Context, log tier.LogID, from tier.Position) (*Copies, error) {
	q := url.Values{"from": {strconv.FormatUint(uint64(from), 10)}}
	return call[Copies](ctx, c, http.MethodGet, logPath(log, "copies"), q)
}

// Explain implements Backend.
func (c *Client) Explain(ctx context.Context, log tier.LogID, o tier.Offset) (*Explanation, error) {
	return call[Explanation](ctx, c, http.MethodGet, logPath(log, "explain"), offset(o))
}

// PolicyInput implements Backend.
func (c *Client) PolicyInput(ctx context.Context, log tier.LogID, o tier.Offset,
	action tier.Action) (*PolicyInput, error) {
	q := offset(o)
	if action != "" {
		q.Set("action", string(action))
	}
	return call[PolicyInput](ctx, c, http.MethodGet, logPath(log, "policy-input"), q)
}

// Resume implements Backend.
func (c *Client) Resume(ctx context.Context, table string) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, tablePath(table, "resume"), nil)
	return err
}

// AcceptLoss implements Backend.
func (c *Client) AcceptLoss(ctx context.Context, log tier.LogID, o tier.Offset,
) (*AcceptedLoss, error) {
	return call[AcceptedLoss](ctx, c, http.MethodPost, logPath(log, "accept-loss"), offset(o))
}

// Reload implements Backend.
func (c *Client) Reload(ctx context.Context, accept string) (*Generation, error) {
	q := url.Values{}
	if accept != "" {
		q.Set("accept", accept)
	}
	return call[Generation](ctx, c, http.MethodPost, "/-/reload", q)
}

func logPath(log tier.LogID, verb string) string {
	return "/api/v1/logs/" + url.PathEscape(log.String()) + "/" + verb
}

func offset(o tier.Offset) url.Values {
	return url.Values{"offset": {strconv.FormatInt(int64(o), 10)}}
}

// call makes one request. The host of the address is for the protocol's sake only. A health that is
// not good comes with 503 and without an error, so it is read like any other answer.
func call[T any](ctx context.Context, c *Client, method, path string, q url.Values) (*T, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return send[T](ctx, c, method, path, nil)
}

// send makes one request with a body, which may be nil.
func send[T any](ctx context.Context, c *Client, method, path string, content io.Reader,
) (*T, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://tierd"+path, content)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, Errorf(CodeUnavailable, "ask the daemon: %v", errors.Unwrap(err))
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
	if err != nil {
		return nil, Errorf(CodeUnavailable, "read the daemon's answer: %v", err)
	}
	var f failure
	if err := json.Unmarshal(body, &f); err == nil && f.Error != nil {
		return nil, f.Error
	}
	out := new(T)
	if err := json.Unmarshal(body, out); err != nil {
		return nil, Errorf(CodeInternal, "the daemon's answer (%s): %v", resp.Status, err)
	}
	return out, nil
}
