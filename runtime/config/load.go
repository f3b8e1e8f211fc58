package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/document"
	"github.com/tierd/tierd/runtime/tier"
)

// fileBytesMax bounds the configuration file and every policy and data file.
const fileBytesMax = 4 << 20

// Load reads and checks the file at path. The error is of type Problems.
func Load(path string, host Host) (*Config, error) {
	c, problems := look(path, host)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// look is Load that gives what could be read where something is wrong; nil where nothing could.
func look(path string, host Host) (*Config, Problems) {
	content, problems := read(path, host)
	if len(problems) > 0 {
		return nil, problems
	}
	return parse(path, content, host)
}

// read gives the content of the file, or Problems.
func read(path string, host Host) ([]byte, Problems) {
	content, err := host.ReadFile(path)
	if err == nil {
		return content, nil
	}
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err // the place names the path already
	}
	return nil, Problems{{Place{File: path}, fmt.Sprintf("cannot be read: %v", err),
		"name another file with --config or TIERD_CONFIG"}}
}

// Parse checks content as the file at path. The error is of type Problems.
func Parse(path string, content []byte, host Host) (*Config, error) {
	c, problems := parse(path, content, host)
	if len(problems) > 0 {
		return nil, problems
	}
	return c, nil
}

// parse is Parse that gives what could be read where something is wrong; nil where nothing could.
func parse(path string, content []byte, host Host) (*Config, Problems) {
	d := newDecoder(path, host)
	root := d.document(content)
	if root == nil {
		return nil, d.problems.sorted()
	}
	c := d.config(root)
	c.Path, c.Warnings, c.places = path, d.warnings.sorted(), d.places
	return c, d.problems.sorted()
}

// DataDir reads nothing of the file but data_dir, so that a running daemon is found though the file
// has become wrong since.
func DataDir(path string, host Host) (string, error) {
	content, problems := read(path, host)
	if len(problems) > 0 {
		return "", problems
	}
	d := newDecoder(path, host)
	root := d.document(content)
	if root != nil && root.Kind != yaml.MappingNode {
		d.problem(root, "", "want a mapping, got %s", describe(root))
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return "", d.problems.sorted()
	}
	dir := d.abs(defaultDataDir)
	d.pairs(root, func(key, v *yaml.Node) {
		if s, err := d.path(v); key.Value == "data_dir" && err == nil {
			dir = s
		}
	})
	return dir, nil
}

func newDecoder(path string, host Host) *decoder {
	d := &decoder{file: path, dir: filepath.Dir(path), host: host,
		places: map[string]Place{}}
	if abs, err := filepath.Abs(d.dir); err == nil {
		d.dir = abs
	}
	return d
}

// document returns the only document of the file, or nil with a problem.
func (d *decoder) document(content []byte) *yaml.Node {
	if len(content) > fileBytesMax {
		d.problemAt(Place{File: d.file}, "", "the file is larger than %s",
			FormatBytes(fileBytesMax))
		return nil
	}
	var doc, next yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(content))
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		d.problemAt(Place{d.file, 1, 1}, "it needs at least sources and bucket",
			"the file is empty")
		return nil
	case err != nil:
		d.syntax(content, err)
		return nil
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		d.problem(&next, "one file is one configuration", "a second document starts here")
	case !errors.Is(err, io.EOF):
		d.syntax(content, err)
		return nil
	}
	return doc.Content[0]
}

func (d *decoder) syntax(content []byte, err error) {
	place, text := document.NoYAML(content, err)
	d.problemAt(Place{d.file, place.Line, place.Column}, "", "not valid YAML: %s", text)
}

// config reads the file's mapping.
func (d *decoder) config(root *yaml.Node) *Config {
	c := &Config{
		DataDir: d.abs(defaultDataDir), Interval: defaultInterval,
		Copy: defaultCopy(), Limits: defaultLimits(), HTTP: HTTP{Listen: defaultListen},
		Read: defaultRead(), Scrub: defaultScrub(),
	}
	c.Limits.PauseFile = d.abs(c.Limits.PauseFile)
	dataDir := setting[string]{value: c.DataDir}
	interval := setting[time.Duration]{value: c.Interval}
	system := setting[bool]{value: true}
	seen := d.object(root, "", []field{
		{"data_dir", placed(d, "data_dir", &dataDir, d.path)},
		{"interval", placed(d, "interval", &interval, duration(time.Millisecond))},
		{keySystem, placed(d, keySystem, &system, boolean)},
		{"sources", d.readSources(c)},
		{"bucket", d.readBucket(&c.Bucket)},
		{"defaults", func(n *yaml.Node) { d.object(n, " in defaults", c.defaults.fields(d)) }},
		{"tables", d.readTables(c)},
		{"policies", d.readPolicies(&c.Policies)},
		{"facts", d.readFacts(&c.Facts)},
		{"plugins", d.readPlugins(&c.Plugins)},
		{"copy", d.readCopy(&c.Copy)},
		{"limits", d.readLimits(&c.Limits)},
		{"http", d.readHTTP(&c.HTTP)},
		{"read", d.readRead(&c.Read)},
		{"scrub", d.readScrub(&c.Scrub)},
		{"kafka", d.readKafka(&c.Kafka)},
	})
	d.require(root, "", seen, "sources", "bucket")
	c.DataDir, c.Interval = dataDir.value, interval.value
	c.SystemEnable, c.systemPlace = system.value, system.place
	d.checkTables(c)
	d.checkFacts(c)
	d.checkApart(c, dataDir)
	d.checkStep(c, interval.place)
	return c
}

// checkStep reports a bound on steps of the clock that ordinary time goes beyond: the ledger is
// told the time every ClockEvery, and that is thought of at least once per interval.
func (d *decoder) checkStep(c *Config, interval Place) {
	least := 2 * (ClockEvery + c.Interval)
	if c.Limits.MaxClockStep >= least {
		return
	}
	place := c.Limits.stepPlace
	if place == (Place{}) {
		place = interval
	}
	d.problemAt(place, "give it at least "+FormatDuration(least), "max_clock_step of %s: with an "+
		"interval of %s so much passes between two looks at the clock, and final deletions would pause "+
		"for ever", FormatDuration(c.Limits.MaxClockStep), FormatDuration(c.Interval))
}

func (d *decoder) readPolicies(p *Policies) func(*yaml.Node) {
	return func(n *yaml.Node) {
		before := len(d.problems)
		paths := func(name string, dst *[]string, places *[]Place) func(*yaml.Node) {
			return d.list(name, func(_ int, v *yaml.Node) {
				var s string
				value(d, name, &s, d.path)(v)
				*dst, *places = append(*dst, s), append(*places, d.at(v))
			})
		}
		d.object(n, " in policies", []field{
			{"paths", paths("paths", &p.Paths, &p.pathPlaces)},
			{"data", paths("data", &p.Data, &p.dataPlaces)},
			{"max_policy_age", value(d, "max_policy_age", &p.MaxAge, duration(0))},
		})
		p.unknown = len(d.problems) > before
	}
}

func (d *decoder) readCopy(c *Copy) func(*yaml.Node) {
	workers := int64(c.Workers)
	return func(n *yaml.Node) {
		d.object(n, " in copy", []field{
			{"verify", value(d, "verify", &c.Verify,
				oneOf(tier.VerifySize, tier.VerifySample, tier.VerifyFull))},
			{"workers", value(d, "workers", &workers, count(1, 256))},
			{"bytes_per_second", value(d, "bytes_per_second", &c.BytesPerSecond, size(0))},
			{"timeout", value(d, "timeout", &c.Timeout, duration(time.Millisecond))},
			{"hold_max", value(d, "hold_max", &c.HoldMax, duration(0))},
		})
		c.Workers = int(workers)
	}
}

func (d *decoder) readLimits(l *Limits) func(*yaml.Node) {
	stop := func(parse parser[int64]) parser[int64] {
		return func(n *yaml.Node) (int64, error) {
			v, err := parse(n)
			if err != nil && n.Value == "0" {
				err = &hinted{err.Error(),
					"to stop deletions use the pause file, or local_delete: never"}
			}
			return v, err
		}
	}
	workers := int64(l.RemoteDeleteWorkers)
	step := setting[time.Duration]{value: l.MaxClockStep}
	return func(n *yaml.Node) {
		d.object(n, " in limits", []field{
			{"max_delete_segments", value(d, "max_delete_segments", &l.MaxDeleteSegments,
				stop(count(1, 1e12)))},
			{"max_delete_bytes", value(d, "max_delete_bytes", &l.MaxDeleteBytes, stop(size(1)))},
			{"per", value(d, "per", &l.Per, duration(time.Second))},
			{"remote_delete_grace", value(d, "remote_delete_grace", &l.RemoteDeleteGrace,
				duration(0))},
			{"remote_delete_workers", value(d, "remote_delete_workers", &workers, count(1, 256))},
			{"orphan_age", value(d, "orphan_age", &l.OrphanAge, duration(time.Minute))},
			{"max_clock_step", placed(d, "max_clock_step", &step, duration(time.Second))},
			{"clock_tolerance", value(d, "clock_tolerance", &l.ClockTolerance, duration(0))},
			{"pause_file", value(d, "pause_file", &l.PauseFile, d.path)},
		})
		l.RemoteDeleteWorkers = int(workers)
		l.MaxClockStep, l.stepPlace = step.value, step.place
	}
}

func (d *decoder) readHTTP(h *HTTP) func(*yaml.Node) {
	return func(n *yaml.Node) {
		listen := setting[string]{value: h.Listen}
		d.object(n, " in http", []field{
			{"listen", placed(d, "listen", &listen, address)},
			{"web_config", d.noted(KeyWebConfig, value(d, "web_config", &h.WebConfig, d.path))},
		})
		h.Listen = listen.value
		host, _, err := net.SplitHostPort(h.Listen)
		if ip := net.ParseIP(host); err == nil && h.WebConfig == "" && host != "localhost" &&
			(ip == nil || !ip.IsLoopback()) {
			d.warn(listen.place, "set http.web_config, or listen on 127.0.0.1",
				"listen %s: whoever reaches this address can read and control tierd", h.Listen)
		}
	}
}

// address reads host:port. "off" and "" read as empty.
func address(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" && (n.Value == "off" || n.Value == "") {
		return "", nil
	}
	s, err := text(n)
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", fmt.Errorf(`want host:port or off, got %q`, s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("want a port from 0 to 65535, got %q", port)
	}
	return s, nil
}
