package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/runtime/api"
	"github.com/tierd/tierd/runtime/config"
)

// The bounds of one connection. Answers about a hundred thousand logs take seconds to write.
const (
	headerTimeout = 10 * time.Second
	writeTimeout  = 5 * time.Minute
	idleTimeout   = 2 * time.Minute
	stopTimeout   = 5 * time.Second
)

// server answers on the socket, and over HTTP where that is configured.
type server struct {
	socket   string
	http     config.HTTP // Listen is empty where HTTP is off
	registry *prometheus.Registry
	log      *slog.Logger
}

// serve listens, answers from b until ctx ends, and lets requests under way finish. It is a
// daemon.Serve.
func (s *server) serve(ctx context.Context, b api.Backend, listening func()) error {
	metrics := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry})
	handler := rolling(api.Handler(b, metrics))
	listener, err := api.Listen(s.socket)
	if err != nil {
		return err
	}
	var tcp net.Listener
	if s.http.Listen != "" {
		if tcp, err = net.Listen("tcp", s.http.Listen); err != nil {
			return errors.Join(fmt.Errorf("http.listen: %w", err), listener.Close())
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	until(ctx, g, handler, func(x *http.Server) error { return x.Serve(listener) })
	if tcp != nil {
		s.log.Info("listening", "http", tcp.Addr().String(), "socket", s.socket)
		flags := &web.FlagConfig{WebConfigFile: &s.http.WebConfig}
		until(ctx, g, handler, func(x *http.Server) error {
			return web.Serve(tcp, x, flags, slog.New(slog.DiscardHandler))
		})
	}
	listening()
	return g.Wait()
}

// until runs a server of its own in g, and shuts it down when ctx ends.
func until(ctx context.Context, g *errgroup.Group, h http.Handler, run func(*http.Server) error) {
	x := &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	g.Go(func() error {
		if err := run(x); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := x.Shutdown(stop); err != nil {
			return x.Close()
		}
		return nil
	})
}
