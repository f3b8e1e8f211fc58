package config

import (
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/tier"
)

// Config is one file, checked and resolved: nothing in it is defaulted any further. It is
// immutable and safe for concurrent use.
type Config struct {
	// Path is the file, as it was given to Load.
	Path string
	// DataDir is where ledger, audit record, reserve, lock and socket live. Absolute.
	DataDir string
	// Interval is how often sources are scanned and due work is looked for.
	Interval time.Duration
	// SystemEnable is remote.log.storage.system.enable. Where it is false no table tiers.
	SystemEnable bool
	systemPlace  Place // of it; the zero Place where the file does not have it
	Sources      []Source
	Bucket       Bucket
	Policies     Policies
	Facts        []Fact
	Plugins      []Plugin // in the order in which they are asked
	Copy         Copy
	Limits       Limits
	HTTP         HTTP
	Read         Read
	Scrub        Scrub
	Kafka        Kafka
	// Warnings are what is legal but hardly meant, by place.
	Warnings Problems

	places   map[string]Place
	defaults entry
	tables   []entry
	match    matcher // of the names of tables
	// anyTable is set where the file has no "tables": every table is governed, by the defaults.
	anyTable bool
}

// The keys of values that others check.
const (
	KeyWebConfig = "http.web_config"
	KeyUsersFile = "kafka.users_file"
	KeyKafkaTLS  = "kafka.tls"
)

// Problem is what others found wrong with the value of one of these keys.
func (c *Config) Problem(key string, err error) Problem {
	return Problem{Place: c.places[key], Text: err.Error()}
}

// Source is one directory of logs.
type Source struct {
	Name        string
	Layout      tier.Layout
	Path        string // absolute
	LocalDelete tier.LocalDelete
	// Pattern matches the whole names of a plain source's segment files; its group "base" is the
	// base offset. Empty for other layouts.
	Pattern string
	// Next says how the end of a plain segment is known. Empty for other layouts.
	Next Next
	// ClosedAfter closes the last segment of a plain log once it has not changed for so long;
	// 0 never does.
	ClosedAfter time.Duration
	// Kafka is how the cluster of a kafka source is reached; zero where the file does not say.
	Kafka Broker
	Place Place
}

// Next says how the end of a plain segment is known.
type Next string

// The ways to know where a plain segment ends.
const (
	NextFollowing Next = "following" // at the base of the file that follows; the last one is open
	NextBasePlus1 Next = "base+1"    // one offset a file
	NextBaseSize  Next = "base+size" // offsets count bytes
)

// Bucket is the object store, in the form that thanos objstore's client factory reads.
type Bucket struct {
	// Type names the provider, in upper case.
	Type string
	// Prefix stands before every key; may be empty.
	Prefix string
	// Directory is the absolute path of a FILESYSTEM bucket; empty for every other type.
	Directory string
	// YAML is a document with type, config and prefix, references to the environment replaced.
	// It holds secrets: it must not be printed.
	YAML []byte

	node  *yaml.Node // the same as it stands in the file, references not replaced
	place Place
}

// Policies names the user's policies and their data.
type Policies struct {
	// Paths are *.rego files, or directories of them; absolute.
	Paths []string
	// Data are .yaml, .yml and .json files, or directories of them; absolute.
	Data []string
	// MaxAge stops deletions where the policies were not loaded for so long; 0 never does.
	MaxAge time.Duration

	pathPlaces, dataPlaces []Place // of the entries of Paths and Data
	unknown                bool    // something was wrong with them, so that others may be meant
}

// Fact is what policies see as input.facts.NAME: a file, or the offsets that consumer groups have
// committed. It changes while tierd runs, so that it is not part of a generation.
type Fact struct {
	Name   string
	Path   string        // of a file: absolute; ends in .json, .yaml or .yml
	Kafka  string        // else the source whose broker knows the groups
	Groups []string      // at least one
	MaxAge time.Duration // of the file's modification time or the broker's answer
	Place  Place

	source setting[string] // Kafka
}

// Copy bounds and checks the uploads.
type Copy struct {
	Verify         tier.VerifyMode
	Workers        int           // copies at one time
	BytesPerSecond int64         // of all uploads together; 0 is unlimited
	Timeout        time.Duration // of one call of the store
	HoldMax        time.Duration // longest time that a copy may be held back
}

// Limits are the brakes and tolerances.
type Limits struct {
	MaxDeleteSegments int64         // of one table within Per
	MaxDeleteBytes    int64         // of one table within Per
	Per               time.Duration // window of the two brakes
	RemoteDeleteGrace time.Duration // between moving the log start and deleting objects
	// RemoteDeleteWorkers is how many removals of copies may be with the store at one time.
	RemoteDeleteWorkers int
	OrphanAge           time.Duration // how old an object must be to be an orphan
	MaxClockStep        time.Duration // a larger step of the wall clock pauses final deletions
	ClockTolerance      time.Duration // how far in the future a timestamp may lie and still be used
	PauseFile           string        // absolute; while it exists nothing is deleted

	stepPlace Place // of max_clock_step; zero where the file has none
}

// ClockEvery is how often the ledger is told the time.
const ClockEvery = time.Minute

// HTTP is the operator's endpoint.
type HTTP struct {
	Listen    string // host:port; empty is off
	WebConfig string // absolute path of an exporter-toolkit web configuration; may be empty
}

// The built-in defaults.
const (
	defaultTTL      = 7 * day
	defaultDataDir  = "tierd-data"
	defaultListen   = "127.0.0.1:9191"
	defaultInterval = 30 * time.Second
)

// defaultCopy and defaultLimits are what stands in force where the file says nothing.
func defaultCopy() Copy {
	return Copy{Verify: tier.VerifySample, Workers: 4, Timeout: 5 * time.Minute, HoldMax: day}
}

func defaultLimits() Limits {
	return Limits{
		MaxDeleteSegments: 1000, MaxDeleteBytes: 100 << 30, Per: time.Hour,
		RemoteDeleteGrace: 10 * time.Minute, RemoteDeleteWorkers: 16, OrphanAge: day,
		MaxClockStep: 7 * day, ClockTolerance: 5 * time.Minute,
		PauseFile: "PAUSE",
	}
}

// Brake gives the two deletion limits in the gate's form.
func (l Limits) Brake() tier.Brake {
	return tier.Brake{MaxSegments: l.MaxDeleteSegments, MaxBytes: l.MaxDeleteBytes, Per: l.Per}
}
