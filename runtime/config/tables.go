package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/tier"
)

// The keys of table settings, as Kafka's and Fluss's users know them.
const (
	keyTTL           = "table.log.ttl"
	keyLocalTTL      = "table.log.local-ttl"
	keyLocalSegments = "table.log.tiered.local-segments"
	keyBytes         = "table.log.bytes"
	keyLocalBytes    = "table.log.local-bytes"
	keyTiering       = "remote.storage.enable"
	keyDisable       = "remote.log.disable.policy"
	keyCompacted     = "compacted"
	keySystem        = "remote.log.storage.system.enable"
)

// settingKeys are the keys that "defaults" and every entry of "tables" may have.
var settingKeys = []string{
	keyTTL, keyLocalTTL, keyLocalSegments, keyBytes, keyLocalBytes, keyTiering, keyDisable,
}

// wordUnset takes a limit of "defaults" away again.
const wordUnset = "unset"

// entry is a set of table settings: the section "defaults", an entry of "tables", or one laid over
// the other. A setting without a place is not set there.
type entry struct {
	place         Place           // of the entry; zero for the built-in defaults
	name          setting[string] // a literal name or a glob
	labels        map[string]string
	ttl           setting[time.Duration]
	localTTL      setting[tier.Limit] // nanoseconds; unset is "as ttl"
	localSegments setting[tier.Limit]
	bytes         setting[tier.Limit]
	localBytes    setting[tier.Limit]
	tiering       setting[bool]
	disable       setting[tier.DisablePolicy]
	compacted     setting[bool]
}

// builtin is the entry under every other.
func builtin() entry {
	return entry{
		ttl:     setting[time.Duration]{value: defaultTTL},
		tiering: setting[bool]{value: true},
		disable: setting[tier.DisablePolicy]{value: tier.PolicyRetain},
	}
}

// over lays e over base: what e sets wins.
func (e entry) over(base entry) entry {
	out := e
	out.ttl = first(e.ttl, base.ttl)
	out.localTTL = first(e.localTTL, base.localTTL)
	out.localSegments = first(e.localSegments, base.localSegments)
	out.bytes = first(e.bytes, base.bytes)
	out.localBytes = first(e.localBytes, base.localBytes)
	out.tiering = first(e.tiering, base.tiering)
	out.disable = first(e.disable, base.disable)
	return out
}

func first[T any](over, base setting[T]) setting[T] {
	if over.set() {
		return over
	}
	return base
}

// fields reads the settings that "defaults" and entries share.
func (e *entry) fields(d *decoder) []field {
	none := "0 would keep nothing; leave the key out for no limit"
	ttlLimit := func(n *yaml.Node) (int64, error) {
		v, err := duration(0)(n)
		return int64(v), err
	}
	return []field{
		{keyTTL, placed(d, keyTTL, &e.ttl, duration(0))},
		{keyLocalTTL, placed(d, keyLocalTTL, &e.localTTL, limit(ttlLimit, ""))},
		{keyLocalSegments, placed(d, keyLocalSegments, &e.localSegments,
			limit(count(0, math.MaxInt32), ""))},
		{keyBytes, placed(d, keyBytes, &e.bytes, limit(size(1), none))},
		{keyLocalBytes, placed(d, keyLocalBytes, &e.localBytes, limit(size(1), none))},
		{keyTiering, placed(d, keyTiering, &e.tiering, boolean)},
		{keyDisable, placed(d, keyDisable, &e.disable,
			oneOf(tier.PolicyRetain, tier.PolicyDelete))},
	}
}

// limit reads a value that may also be "unset". A value of 0 that parse refuses gets the hint.
func limit(parse parser[int64], zeroHint string) parser[tier.Limit] {
	return func(n *yaml.Node) (tier.Limit, error) {
		if n.Kind == yaml.ScalarNode && n.Value == wordUnset {
			return tier.Limit{}, nil
		}
		v, err := parse(n)
		if err != nil && n.Value == "0" && zeroHint != "" {
			err = &hinted{err.Error(), zeroHint}
		}
		if err != nil {
			return tier.Limit{}, err
		}
		return tier.Limit{Set: true, Value: v}, nil
	}
}

// readTables reads the list of entries.
func (d *decoder) readTables(c *Config) func(*yaml.Node) {
	c.anyTable = true
	read := d.list("tables", func(_ int, n *yaml.Node) {
		e := entry{place: d.at(n)}
		seen := d.object(n, " in an entry of tables", append([]field{
			{"name", placed(d, "name", &e.name, tablePattern)},
			{keyCompacted, placed(d, keyCompacted, &e.compacted, boolean)},
			{"labels", d.labels(&e.labels)},
		}, e.fields(d)...))
		d.require(n, " in an entry of tables", seen, "name")
		if e.name.set() {
			d.shadowed(c, e)
			c.match.add(e.name.value, len(c.tables))
			c.tables = append(c.tables, e)
		}
	})
	return func(n *yaml.Node) {
		c.anyTable = false
		read(n)
	}
}

// patternBytesMax bounds a table's name or glob. The ledger notes which of them governs a table, in
// at most 4 KiB: a table whose entry it refused to note would fall to the defaults when that is
// gone.
const patternBytesMax = 4000

// tablePattern reads a table's name or glob.
func tablePattern(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	if _, err := path.Match(s, ""); err != nil {
		return "", &hinted{fmt.Sprintf("%q is not a glob", s),
			`globs have *, ?, [a-z] and \ before a literal one of these`}
	}
	if strings.HasPrefix(s, "__") {
		return "", errors.New("names that start with __ are no tables, and are never touched")
	}
	if len(s) > patternBytesMax {
		return "", fmt.Errorf("a name of %d bytes: at most %d are allowed", len(s), patternBytesMax)
	}
	return s, nil
}

// globChars are what makes a name a glob.
const globChars = `*?[\`

// isGlob reports whether the name can match anything but itself.
func isGlob(name string) bool { return strings.ContainsAny(name, globChars) }

// shadowed warns of an entry that can never govern, since one before it matches all that it does.
// Of a glob only its like is known to do so.
func (d *decoder) shadowed(c *Config, e entry) {
	before, ok := c.match.find(e.name.value)
	if isGlob(e.name.value) {
		before, ok = c.match.literal[e.name.value]
	}
	if ok {
		b := c.tables[before]
		advice := "the first match wins: move it up"
		if b.name.value == e.name.value {
			advice = "make one entry of both"
		}
		d.warn(e.name.place, advice,
			"this entry is never used: %q in line %d matches first", b.name.value, b.place.Line)
	}
}

// labels reads a mapping of texts.
func (d *decoder) labels(dst *map[string]string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			d.problem(n, "", "labels: want a mapping of texts, got %s", describe(n))
			return
		}
		*dst = map[string]string{}
		d.pairs(n, func(k, v *yaml.Node) {
			var s string
			value(d, "label "+k.Value, &s, text)(v)
			(*dst)[k.Value] = s
		})
	}
}

// checkTables checks what only the resolved settings show, and resolves the entries in place.
func (d *decoder) checkTables(c *Config) {
	c.defaults = c.defaults.over(builtin())
	told := map[[2]Place]bool{}
	check := func(e entry) {
		ttl, local := e.ttl, e.localTTL
		pair := [2]Place{ttl.place, local.place}
		if l := time.Duration(local.value.Value); l > ttl.value && ttl.value > 0 && !told[pair] {
			told[pair] = true
			d.problemAt(local.place, "lower the one or raise the other",
				"%s %s is longer than %s %s (%s)", keyLocalTTL, FormatDuration(l),
				keyTTL, FormatDuration(ttl.value), origin(ttl.place))
		}
		pair = [2]Place{e.tiering.place}
		if !c.SystemEnable && e.tiering.value && e.tiering.set() && !told[pair] {
			told[pair] = true
			d.problemAt(e.tiering.place, fmt.Sprintf("remove it, or set %s to true", keySystem),
				"%s is true while %s is false", keyTiering, keySystem)
		}
	}
	check(c.defaults)
	first := map[string]int{}
	for i := range c.tables {
		c.tables[i] = c.tables[i].over(c.defaults)
		check(c.tables[i])
		d.compactedNamed(&c.tables[i])
		name := c.tables[i].name.value
		if j, twice := first[name]; twice {
			d.contradicts(&c.tables[j], &c.tables[i])
			continue
		}
		first[name] = i
	}
}

// compactedNamed warns of an entry that names a table which it says cannot be tiered.
func (d *decoder) compactedNamed(e *entry) {
	if e.compacted.value && e.tiering.value && !isGlob(e.name.value) {
		d.warn(e.compacted.place, "set "+keyTiering+": false, or take the entry out",
			"%q is compacted and cannot be tiered", e.name.value)
	}
}

// contradicts says so where two entries of one name turn tiering on and off, or off in two ways.
// The first match wins, which is hardly what is meant by whoever wrote the second.
func (d *decoder) contradicts(first, second *entry) {
	const hint = "keep one of the two"
	switch {
	case first.tiering.value != second.tiering.value:
		d.problemAt(cmp.Or(second.tiering.place, second.name.place), hint,
			"%s of %q is %t, and %t in line %d", keyTiering, second.name.value, second.tiering.value,
			first.tiering.value, first.place.Line)
	case !first.tiering.value && first.disable.value != second.disable.value:
		d.problemAt(cmp.Or(second.disable.place, second.name.place), hint,
			"%s of %q is %s, and %s in line %d", keyDisable, second.name.value, second.disable.value,
			first.disable.value, first.place.Line)
	}
}

// origin names where a setting comes from.
func origin(p Place) string {
	if (p == Place{}) {
		return "default"
	}
	return p.Short()
}

// governing returns the entry that governs the table, resolved.
func (c *Config) governing(name string) (entry, bool) {
	if name == "" || strings.HasPrefix(name, "__") {
		return entry{}, false
	}
	if i, ok := c.match.find(name); ok {
		return c.tables[i], true
	}
	return c.defaults, c.anyTable
}

// Table returns the effective settings of the table. ok is false where no entry governs it, and
// for names that start with "__", which are no tables. It is pure.
func (c *Config) Table(name string) (t tier.Table, ok bool) {
	e, ok := c.governing(name)
	if !ok {
		return tier.Table{}, false
	}
	t = tier.Table{
		Name: name, Labels: maps.Clone(e.labels),
		TTL: e.ttl.value, LocalTTL: e.ttl.value,
		LocalSegments: e.localSegments.value, Bytes: e.bytes.value, LocalBytes: e.localBytes.value,
		Tiering:       e.tiering.value && c.SystemEnable,
		DisablePolicy: e.disable.value, Entry: "defaults",
	}
	if e.localTTL.value.Set {
		t.LocalTTL = time.Duration(e.localTTL.value.Value)
	}
	if e.compacted.set() {
		t.Compacted = tier.TruthOf(e.compacted.value)
	}
	t.Governor = tier.GovernedByDefaults
	if e.name.set() {
		t.Entry, t.Governor = e.place.Short(), "tables/"+e.name.value
		t.Named = e.name.value == name
	}
	return t, true
}

// Named reports whether an entry names the table literally, and not by a glob or by default.
func (c *Config) Named(name string) bool {
	e, ok := c.governing(name)
	return ok && e.name.set() && e.name.value == name
}

// Setting is one effective setting of a table and where it comes from.
type Setting struct {
	Key    string
	Value  string // as it would stand in the file
	Origin string // "default", or file:line
}

// Settings returns all settings of the table in a fixed order; nil where no entry governs it.
func (c *Config) Settings(table string) []Setting {
	e, ok := c.governing(table)
	if !ok {
		return nil
	}
	number := func(v int64) string { return strconv.FormatInt(v, 10) }
	localTTL := Setting{keyLocalTTL, FormatDuration(e.ttl.value), origin(e.ttl.place)}
	if e.localTTL.value.Set {
		localTTL.Value = FormatDuration(time.Duration(e.localTTL.value.Value))
		localTTL.Origin = origin(e.localTTL.place)
	}
	tiering := Setting{keyTiering, strconv.FormatBool(e.tiering.value), origin(e.tiering.place)}
	if !c.SystemEnable {
		tiering.Value, tiering.Origin = "false", origin(c.systemPlace)
	}
	compacted := wordUnset
	if e.compacted.set() {
		compacted = strconv.FormatBool(e.compacted.value)
	}
	return []Setting{
		{keyTTL, FormatDuration(e.ttl.value), origin(e.ttl.place)},
		localTTL,
		limitSetting(keyLocalSegments, e.localSegments, number),
		limitSetting(keyBytes, e.bytes, FormatBytes),
		limitSetting(keyLocalBytes, e.localBytes, FormatBytes),
		tiering,
		{keySystem, strconv.FormatBool(c.SystemEnable), origin(c.systemPlace)},
		{keyDisable, string(e.disable.value), origin(e.disable.place)},
		{keyCompacted, compacted, origin(e.compacted.place)},
	}
}

func limitSetting(key string, s setting[tier.Limit], format func(int64) string) Setting {
	out := Setting{key, wordUnset, origin(s.place)}
	if s.value.Set {
		out.Value = format(s.value.Value)
	}
	return out
}

// Names are the names and globs of the entries of tables, in order, each once; nil where the file
// has none and every table is governed.
func (c *Config) Names() []string {
	var out []string
	for _, e := range c.tables {
		if !slices.Contains(out, e.name.value) {
			out = append(out, e.name.value)
		}
	}
	return out
}
