package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/tierd/tierd/runtime/config"
	"github.com/tierd/tierd/runtime/kafka"
)

// kafkaAcceptPause is how long the endpoint waits before it accepts again, after it could not: with
// too many open files, for one.
const kafkaAcceptPause = time.Second

// kafkaEndpoint is the Kafka endpoint of a running daemon.
type kafkaEndpoint struct {
	d        *Daemon
	listener net.Listener
	tls      *tls.Config
	server   *kafka.Server
	slots    chan struct{} // one for each connection that may be
	// lines bounds what is written to the log of clients that do wrong: anybody can be one.
	lines *rate.Limiter
}

// openKafka takes the configured address, so that one that cannot be had is an error at once. It is
// nil where the endpoint is off.
func (d *Daemon) openKafka() (*kafkaEndpoint, error) {
	c := d.gen.Load().config.Kafka
	if c.Listen == "" {
		return nil, nil
	}
	e := &kafkaEndpoint{d: d, slots: make(chan struct{}, c.MaxConnections),
		lines: rate.NewLimiter(1, 20)}
	cfg := kafka.Config{
		Logs: kafkaLogs{d.reader}, ClusterID: d.ledger.ID(), Advertised: c.Advertised,
		Limits: kafka.DefaultLimits(), Now: d.opts.Now, Wait: pauseUntil, Changed: d.changes.channel,
		Observe: e.observe,
	}
	var err error
	if c.UsersFile != "" {
		users, err := openKafkaUsers(c.UsersFile, func(err error) {
			e.line("nobody is let in by the Kafka endpoint", "err", err)
		})
		if err != nil {
			return nil, err
		}
		cfg.Authenticate = users.check
	}
	if e.tls, err = kafkaTLS(c.TLS); err != nil {
		return nil, err
	}
	if e.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("kafka.listen: %w", err)
	}
	e.server = kafka.New(cfg)
	return e, nil
}

// CheckKafka reads the files that the endpoint's configuration names, and does nothing else.
func CheckKafka(c config.Kafka) (users, tls error) {
	if c.UsersFile != "" {
		_, users = openKafkaUsers(c.UsersFile, func(error) {})
	}
	_, tls = kafkaTLS(c.TLS)
	return users, tls
}

// close gives the address back. It may be called twice, and on nil.
func (e *kafkaEndpoint) close() {
	if e != nil {
		_ = e.listener.Close() // the second time says that it is closed
	}
}

// serve answers clients until ctx ends, and returns when the last connection has ended.
func (e *kafkaEndpoint) serve(ctx context.Context) error {
	if e == nil {
		return nil
	}
	e.d.log.Info("listening", "kafka", e.listener.Addr().String())
	allowGarbage(ctx)
	stop := context.AfterFunc(ctx, e.close)
	defer stop()
	var g errgroup.Group
	for {
		nc, err := e.listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = nc.Close() // it came too late
			}
			return g.Wait()
		}
		if err != nil {
			e.line("the Kafka endpoint cannot take connections", "err", err)
			_ = pauseUntil(ctx, kafkaAcceptPause, nil)
			continue
		}
		select {
		case e.slots <- struct{}{}:
		default:
			e.d.metrics.kafka.refused.Inc()
			e.line("a Kafka client is turned away", "client", nc.RemoteAddr().String(),
				"why", fmt.Sprintf("%d are connected, and kafka.max_connections is no more",
					cap(e.slots)))
			_ = nc.Close()
			continue
		}
		g.Go(func() error {
			defer func() { <-e.slots }()
			e.client(ctx, nc)
			return nil
		})
	}
}

// client serves one connection. What is wrong with it is one line.
func (e *kafkaEndpoint) client(ctx context.Context, nc net.Conn) {
	e.d.metrics.kafka.connections.Inc()
	defer e.d.metrics.kafka.connections.Dec()
	from := nc.RemoteAddr().String()
	if e.tls != nil {
		nc = tls.Server(nc, e.tls)
	}
	if err := e.server.ServeConn(ctx, nc); err != nil {
		e.d.metrics.kafka.ended.Inc()
		e.line("a Kafka client is cut off", "client", from, "why", err)
	}
}

// observe counts a request, and says what went wrong on this side.
func (e *kafkaEndpoint) observe(r kafka.Request) {
	m := e.d.metrics.kafka
	m.requests.WithLabelValues(r.API, r.Code).Inc()
	m.responseBytes.Add(float64(r.Bytes))
	m.recordBytes.Add(float64(r.Records))
	if r.Err != nil && !errors.Is(r.Err, context.Canceled) {
		e.line("a Kafka client did not get what it asked for", "request", r.API, "code", r.Code,
			"err", r.Err)
	}
}

// line writes to the log, unless there were many such lines just now: metrics count all.
func (e *kafkaEndpoint) line(text string, args ...any) {
	if e.lines.Allow() {
		e.d.log.Warn(text, args...)
	}
}
