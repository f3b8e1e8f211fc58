package plugin

import (
	"errors"
	"fmt"
)

// Set is the plugins of one generation of the configuration, in configured order. It is safe for
// concurrent use.
type Set struct {
	options Options
	codes   []*code
	names   []string
}

// LoadError says why one plugin cannot be loaded.
type LoadError struct {
	Plugin string // its name
	Err    error
}

// Error implements error.
func (e *LoadError) Error() string { return fmt.Sprintf("plugin %s: %v", e.Plugin, e.Err) }

// Unwrap gives the cause.
func (e *LoadError) Unwrap() error { return e.Err }

// NameOf takes the name of its plugin from an error of Load. It is "" where the error is of none.
func NameOf(err error) (name string, cause error) {
	if load := (*LoadError)(nil); errors.As(err, &load) {
		return load.Plugin, load.Err
	}
	return "", err
}

// Load makes all plugins ready to run, or none: an error, which joins a LoadError for each, names
// the plugin and says what would be right. Each is instantiated and configured once, so that one
// that cannot work refuses the whole generation. The caller closes the set after all of its
// workers.
func Load(specs []Spec, o Options) (*Set, error) {
	o.Limits = o.Limits.withDefaults()
	s := &Set{options: o}
	var errs []error
	if len(specs) > PluginsMax {
		errs = append(errs, fmt.Errorf("%d plugins are configured, the limit is %d",
			len(specs), PluginsMax))
		specs = nil
	}
	seen := map[string]bool{}
	for _, spec := range specs {
		if seen[spec.Name] || spec.Name == "" {
			errs = append(errs, fmt.Errorf("plugin %q: want a name of its own", spec.Name))
			continue
		}
		seen[spec.Name] = true
		if err := s.add(spec); err != nil {
			errs = append(errs, &LoadError{spec.Name, err})
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, s.Close())...)
	}
	return s, nil
}

func (s *Set) add(spec Spec) error {
	c, err := load(spec, &s.options)
	if err != nil {
		return err
	}
	s.codes, s.names = append(s.codes, c), append(s.names, c.name)
	i, fault := c.newInstance(s.options.Tables, 0, newLogger(c.limits))
	if fault != nil {
		return fault
	}
	i.close()
	return nil
}

// Close ends the set. Workers must have been closed before.
func (s *Set) Close() error {
	var errs []error
	for _, c := range s.codes {
		errs = append(errs, c.close())
	}
	s.codes = nil
	return errors.Join(errs...)
}

// Loaded describes one plugin of a set.
type Loaded struct {
	Name      string
	SHA256    string
	FromCache bool
	CacheErr  error // why the cache could not keep what was compiled; nil if it could
}

// Plugins describes the plugins in configured order.
func (s *Set) Plugins() []Loaded {
	var out []Loaded
	for _, c := range s.codes {
		out = append(out, Loaded{c.name, c.digest, c.cached, c.cacheErr})
	}
	return out
}

// NewWorker returns a worker with instances of its own, which it makes when it first needs them.
func (s *Set) NewWorker() *Worker {
	w := &Worker{set: s}
	for _, c := range s.codes {
		w.slots = append(w.slots, slot{code: c, log: newLogger(c.limits)})
	}
	w.running.Store(notRunning)
	return w
}
