package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"
)

// NodeID is the id of the one broker there is.
const NodeID int32 = 1

// Config is what a Server is made of. Fields are required unless they say otherwise.
type Config struct {
	Logs      Logs
	ClusterID string
	// Advertised is the host:port that clients are told. Empty is the address that a connection
	// came to: with TLS the name that it asked for.
	Advertised string
	// Authenticate checks a user's password, which is not kept; nil lets everybody in. It may take
	// long: passwords are made expensive to guess.
	Authenticate func(user, password string) bool
	Limits       Limits
	Now          func() time.Time
	// Wait returns nil after d, or as soon as changed is closed, and an error when ctx ends.
	Wait func(ctx context.Context, d time.Duration, changed <-chan struct{}) error
	// Changed gives a channel that is closed at the next change of any log.
	Changed func() <-chan struct{}
	// Observe hears of every request that was answered.
	Observe func(Request)
}

// Limits bound what clients can make the process hold and wait for.
type Limits struct {
	RequestBytesMax int // of one request
	// RequestsBytesMax bounds what requests and the answers made of them take in memory; records
	// are counted by the next two.
	RequestsBytesMax int64
	FetchBytesMax    int64 // records in one answer, but for a single batch that is larger
	FetchesBytesMax  int64 // records in all answers together, beyond 64 KiB for each connection

	Idle    time.Duration // between requests
	Frame   time.Duration // for one request to arrive, and for a login
	Write   time.Duration // for 64 KiB of an answer to be taken
	Read    time.Duration // for the store to answer one read
	WaitMax time.Duration // for records to come, whatever the client asks for
}

// DefaultLimits are for about a thousand connections in 256 MiB.
func DefaultLimits() Limits {
	return Limits{
		RequestBytesMax: 1<<20 + 1<<16, RequestsBytesMax: 64 << 20,
		FetchBytesMax: 8 << 20, FetchesBytesMax: 64 << 20,
		Idle: 10 * time.Minute, Frame: 10 * time.Second, Write: 10 * time.Second,
		Read: 30 * time.Second, WaitMax: 30 * time.Second,
	}
}

// Request is a request that was answered.
type Request struct {
	API     string // its name, as Kafka's documentation has it
	Version int16
	Code    string // Kafka's name of the first error in the answer; empty if there is none
	Bytes   int64  // of the answer
	Records int64  // bytes of record batches in it
	// Err is what went wrong on this side, naming the log; nil where the client is at fault.
	Err error
}

// Server answers clients. It is safe for concurrent use.
type Server struct {
	cfg      Config
	apis     map[int16]api
	topics   topics
	requests *semaphore.Weighted // memory of requests and of the answers made of them
	answers  *semaphore.Weighted
	fetches  pool
	reads    *semaphore.Weighted // reads under way: each can hold a batch that nobody counts yet
	logins   *semaphore.Weighted // passwords being checked, which takes a core each
}

// The numbers of what is done at one time.
const (
	readsMax  = 16
	loginsMax = 2
)

// New makes a server.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, apis: table(),
		topics:   topics{list: cfg.Logs.List, now: cfg.Now},
		requests: semaphore.NewWeighted(cfg.Limits.RequestsBytesMax),
		answers:  semaphore.NewWeighted(cfg.Limits.RequestsBytesMax),
		fetches:  pool{free: cfg.Limits.FetchesBytesMax},
		reads:    semaphore.NewWeighted(readsMax),
		logins:   semaphore.NewWeighted(loginsMax),
	}
}

// ServeConn answers the requests of one connection until the client ends it, ctx ends, or something
// is wrong with what it sends or how slowly it does. It closes the connection. The error says why
// the server ended it; it is nil where the client or ctx did.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	c := &conn{s: s, nc: nc, open: s.cfg.Authenticate == nil}
	err := c.serve(ctx)
	if ctx.Err() != nil || errors.Is(err, errClientLeft) {
		err = nil
	}
	// The client learns of it by the end of the connection; what Close says is of no use to anybody.
	_ = nc.Close()
	return err
}

// errClientLeft: the client ended the connection, or is gone.
var errClientLeft = errors.New("the client left")

// advertised is the address that this connection's client is told.
func (c *conn) advertised() (host string, port int32) {
	addr := c.s.cfg.Advertised
	if addr == "" {
		addr = c.nc.LocalAddr().String()
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, 0 // an address of no network, as in tests
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return addr, 0
	}
	if name := serverName(c.nc); c.s.cfg.Advertised == "" && name != "" {
		host = name
	}
	return host, int32(n)
}

// header is what stands before every request (source: Kafka protocol guide, "Request Header").
type header struct {
	key, version int16
	correlation  int32
}

// headerBytes is the part of it that all versions share.
const headerBytes = 8

// parseHeader reads the header's fixed part; the rest depends on the request.
func parseHeader(frame []byte) (header, error) {
	if len(frame) < headerBytes {
		return header{}, fmt.Errorf("a request of %d bytes, where the header alone has %d",
			len(frame), headerBytes)
	}
	return header{
		key:         int16(binary.BigEndian.Uint16(frame)),
		version:     int16(binary.BigEndian.Uint16(frame[2:])),
		correlation: int32(binary.BigEndian.Uint32(frame[4:])),
	}, nil
}

// skipClient passes over the rest of the header: the client's id and, in flexible requests, tags.
func skipClient(frame []byte, flexible bool) ([]byte, error) {
	p := frame[headerBytes:]
	if len(p) < 2 {
		return nil, errors.New("the header ends within the client id")
	}
	n := int(int16(binary.BigEndian.Uint16(p)))
	p = p[2:]
	if n > len(p) {
		return nil, fmt.Errorf("a client id of %d bytes, where %d follow", n, len(p))
	}
	p = p[max(n, 0):]
	if !flexible {
		return p, nil
	}
	count, p, ok := uvarint(p)
	for i := uint32(0); ok && i < count; i++ {
		var size uint32
		if _, p, ok = uvarint(p); !ok {
			break
		}
		if size, p, ok = uvarint(p); ok && uint64(size) <= uint64(len(p)) {
			p = p[size:]
		} else {
			ok = false
		}
	}
	if !ok {
		return nil, errors.New("the tags of the header are not well formed")
	}
	return p, nil
}

// uvarint takes one from p.
func uvarint(p []byte) (uint32, []byte, bool) {
	v, n := binary.Uvarint(p)
	if n <= 0 || v > 1<<32-1 {
		return 0, nil, false
	}
	return uint32(v), p[n:], true
}
