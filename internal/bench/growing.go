package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/runtime/tier"
	"github.com/tierd/tierd/runtime/vfs"
)

// What a user waits for where there is much: seconds from the start of the command until it is
// ready, and from a reload that turns tiering off until the logs have left the store's data behind.
const (
	grownSeconds = 5
	// removalTarget is the rate of removals relative to what the store does for as many callers who
	// do nothing else: of a store across a network. One on the same disk shares it with ledger and
	// audit log, and nothing is promised of it.
	removalTarget = 0.8
	// removals is how many of them tierd has with the store at one time, unless configured otherwise.
	removals = 16
)

// grownConfig lets nothing expire. Tiering is off or on.
const grownConfig = `data_dir: %q
sources: [{name: source, layout: plain, path: %q}]
bucket: {type: FILESYSTEM, config: {directory: %q}}
defaults: {table.log.ttl: 0, remote.storage.enable: %t, remote.log.disable.policy: delete}
limits: {remote_delete_grace: 0}
http: {listen: %q}
`

// daemon is a tierd on what has grown.
type daemon struct {
	*server
	path string // of its configuration
	addr string
}

// configure writes the configuration of a daemon on g.
func (d *daemon) configure(g *grown, tiering bool) error {
	text := fmt.Sprintf(grownConfig, g.path("data"), g.path("source"), g.path("bucket"), tiering,
		d.addr)
	return os.WriteFile(d.path, []byte(text), 0o666)
}

// start starts tierd on g, and returns once it is ready, with how long that took.
func (b *bench) start(g *grown) (*daemon, figure, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, figure{}, err
	}
	d := &daemon{path: g.path("tierd.yaml"), addr: addr}
	if err := d.configure(g, true); err != nil {
		return nil, figure{}, err
	}
	began := time.Now()
	// The ledger was made beside the store, and nobody has claimed that yet.
	d.server, err = startServer(exec.CommandContext(b.ctx, b.tierd, "run", "--config", d.path,
		"--adopt", "--log-level", "warn"))
	if err != nil {
		return nil, figure{}, err
	}
	ready := func() (bool, error) {
		resp, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return false, nil // it does not listen yet
		}
		return resp.StatusCode == http.StatusOK, resp.Body.Close()
	}
	if err := b.until(10*time.Millisecond, ready); err != nil {
		return nil, figure{}, errors.Join(fmt.Errorf("wait until tierd is ready: %w", err), d.stop())
	}
	return d, figure{Value: time.Since(began).Seconds(), Unit: seconds}, nil
}

// until asks again and again, for at most five minutes, until the answer is yes.
func (b *bench) until(every time.Duration, yes func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cancel()
	for {
		if ok, err := yes(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(every):
		}
	}
}

// started starts tierd on g several times, and gives the times and the memory once it has settled.
func (b *bench) started(g *grown) (times, memory []figure, err error) {
	if err := g.make(b.ctx); err != nil {
		return nil, nil, err
	}
	for round := range b.rounds {
		d, took, err := b.start(g)
		if err != nil {
			return nil, nil, err
		}
		// The runtime gives the system what only the start needed back little by little.
		time.Sleep(3 * time.Second)
		// What is of files, the kernel takes back as it likes.
		held, err := memoryOf(d.cmd.Process.Pid, "RssAnon")
		if err = errors.Join(err, d.stop()); err != nil {
			return nil, nil, err
		}
		b.say("  %d/%d %d logs: ready in %s, %.0f MiB", round+1, b.rounds, g.logs, took, held/(1<<20))
		times, memory = append(times, took), append(memory, figure{Value: held, Unit: octets})
	}
	return times, memory, os.RemoveAll(g.dir)
}

// grownRows starts tierd with a million copies, and with as many logs of one copy each.
func grownRows(b *bench) ([]row, error) {
	const logs, each = 10_000, 100
	many := &grown{dir: filepath.Join(b.dir, "many"), logs: logs, perTable: 100, each: each}
	few := &grown{dir: filepath.Join(b.dir, "few"), logs: logs, perTable: 100, each: 1}
	times, memory, err := b.started(many)
	if err != nil {
		return nil, err
	}
	_, least, err := b.started(few)
	if err != nil {
		return nil, err
	}
	for i := range memory {
		memory[i].Value = (memory[i].Value - least[i].Value) / (logs * (each - 1))
	}
	return []row{
		compared("start with 1,000,000 remote segments in 10,000 logs, until ready", times, "", nil,
			figureUpTo(grownSeconds)),
		compared("memory of one more remote segment, of the daemon", memory, "", nil,
			figureUpTo(250)),
	}, nil
}

// status is what the measurements need of tierd's.
type status struct {
	Tables []struct {
		Outstanding struct {
			Segments int64 `json:"segments"`
		} `json:"outstanding"`
	} `json:"tables"`
	Logs []struct {
		LogStart int64 `json:"log_start"`
	} `json:"logs"`
}

func (d *daemon) status() (s status, err error) {
	resp, err := http.Get("http://" + d.addr + "/api/v1/status")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// disableRows turns a table of a million copies off, to be deleted.
func disableRows(b *bench) (rows []row, err error) {
	g := &grown{dir: filepath.Join(b.dir, "disabled"), logs: 1000, perTable: 1000, each: 1000,
		objects: 40}
	if err := g.make(b.ctx); err != nil {
		return nil, err
	}
	b.say("  made")
	d, _, err := b.start(g)
	if err != nil {
		return nil, err
	}
	moved, rate, err := b.disable(d, g)
	if err = errors.Join(err, d.stop()); err != nil {
		return nil, err
	}
	b.say("  all starts moved in %s, then %s removals", moved, rate)
	alone, err := b.deleteAlone(g)
	if err != nil {
		return nil, err
	}
	b.say("  the store alone: %s", alone)
	return []row{
		compared("turn off a table of 1,000 logs of 1,000 remote segments: all starts moved durably",
			[]figure{moved}, "", nil, figureUpTo(grownSeconds)),
		compared("then remove the segments from a local bucket, on the disk of ledger and audit log",
			[]figure{rate}, "16 callers that do nothing but delete and look", []figure{alone}, nil),
	}, os.RemoveAll(g.dir)
}

// disable reloads d with tiering turned off. It returns how long it takes until the start of each
// log has moved, and how many copies go in a second then.
func (b *bench) disable(d *daemon, g *grown) (moved, rate figure, err error) {
	if err := d.configure(g, false); err != nil {
		return moved, rate, err
	}
	plan, err := b.run("plan", "--config", d.path, "--output", "json")
	if err != nil {
		return moved, rate, err
	}
	var p struct {
		Disablement struct {
			Digest string `json:"digest"`
		} `json:"disablement"`
	}
	if err := json.Unmarshal(plan, &p); err != nil {
		return moved, rate, err
	}
	began := time.Now()
	if _, err := b.run("reload", "--config", d.path, "--accept", p.Disablement.Digest); err != nil {
		return moved, rate, err
	}
	end := int64(g.each * grownSpan)
	var left int64
	err = b.until(100*time.Millisecond, func() (bool, error) {
		s, err := d.status()
		if err != nil || len(s.Logs) != g.logs || len(s.Tables) != 1 {
			return false, errors.Join(err, fmt.Errorf("%d logs of %d tables", len(s.Logs), len(s.Tables)))
		}
		for _, l := range s.Logs {
			if l.LogStart != end {
				return false, nil
			}
		}
		left = s.Tables[0].Outstanding.Segments
		return true, nil
	})
	moved = figure{Value: time.Since(began).Seconds(), Unit: seconds}
	if err != nil {
		return moved, rate, err
	}
	began = time.Now()
	first, goal := left, left-int64(g.logs*g.objects/4)
	err = b.until(500*time.Millisecond, func() (bool, error) {
		s, err := d.status()
		if err != nil {
			return false, err
		}
		left = s.Tables[0].Outstanding.Segments
		return left <= goal, nil
	})
	return moved, figure{Value: float64(first-left) / time.Since(began).Seconds(),
		Unit: perSecond}, err
}

// run runs a command of tierd, and returns what it prints.
func (b *bench) run(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(b.ctx, b.tierd, args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", b.tierd, args[0], err, said.String())
	}
	return out, nil
}

// deleteAlone lets as many callers as tierd has delete the objects that tierd has left, newest
// first, and look whether they are gone: what the store can do without anybody else.
func (b *bench) deleteAlone(g *grown) (f figure, err error) {
	disk, err := vfs.OpenOS(g.path("bucket"))
	if err != nil {
		return f, err
	}
	bucket := filesystem.New(disk, "bucket", "alone")
	defer func() { err = errors.Join(err, bucket.Close()) }()
	keys, err := objstore.NewKeys(g.ledger)
	if err != nil {
		return f, err
	}
	deleters, ctx := errgroup.WithContext(b.ctx)
	var next, gone atomic.Int64
	began := time.Now()
	for range removals {
		deleters.Go(func() error {
			for {
				n := int(next.Add(1) - 1)
				if n >= g.logs*g.objects || gone.Load() >= int64(g.logs*g.objects/4) {
					return nil
				}
				fact := g.facts(n % g.logs)[g.objects-1-n/g.logs]
				key, err := keys.File(tier.ObjectKey{Log: g.log(n % g.logs), Epoch: 1,
					Base: fact.Add.Content.Range.Base, Attempt: fact.Add.Attempt,
					Name: fact.Add.Content.Files[0].Name})
				if err != nil {
					return err
				}
				switch err := bucket.Delete(ctx, key); {
				case bucket.IsObjNotFoundErr(err):
					continue // tierd was here
				case err != nil:
					return err
				}
				if there, err := bucket.Exists(ctx, key); err != nil || there {
					return errors.Join(err, fmt.Errorf("%s is still there: %t", key, there))
				}
				gone.Add(1)
			}
		})
	}
	err = deleters.Wait()
	return figure{Value: float64(gone.Load()) / time.Since(began).Seconds(), Unit: perSecond}, err
}
