package sim

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/tierd/tierd/objstore"
	"github.com/tierd/tierd/runtime/tier"
)

// object is one object in the store, with one content. It is the same one in every look that finds
// it with that content.
type object struct {
	key string
	objstore.Key
	data []byte // shared with the store, which never changes it in place
	sum  tier.SHA256
	said *document // of a manifest's object, once it was read
}

// storeTruth is what the store holds.
type storeTruth struct {
	w       *World
	ledger  string // its id
	keys    objstore.Keys
	store   *objstore.Store
	objects []*object                     // files of segments, ascending by key
	others  []*object                     // everything else, likewise
	facts   map[tier.LogID]*manifestTruth // as far as somebody asked
}

// storeNow is the store past all faults. It is read anew after each change, and is not to be
// changed by who looks at it.
func (w *World) storeNow(ledger string) *storeTruth {
	r := &w.storeRead
	if n := w.Objects.Changes(); r.truth == nil || r.changes != n || r.ledger != ledger {
		r.truth, r.changes, r.ledger = w.readStore(ledger), n, ledger
	}
	return r.truth
}

// storeRead is what the store was when it was read last.
type storeRead struct {
	changes uint64
	ledger  string
	truth   *storeTruth
	parsed  map[string]objstore.Key // every key that ever was
	names   map[tier.ObjectKey]string
}

func (w *World) readStore(ledger string) *storeTruth {
	store, err := objstore.New(w.Objects, ledger)
	must(err)
	t := &storeTruth{w: w, ledger: ledger, keys: store.Keys(), store: store,
		facts: map[tier.LogID]*manifestTruth{}}
	var objects, others []*object // of the look before, that come next
	if last := w.storeRead.truth; last != nil {
		objects, others = last.objects, last.others
		t.objects = make([]*object, 0, len(objects)+1)
		t.others = make([]*object, 0, len(others)+1)
	}
	w.Objects.Look(func(key string, data []byte) {
		o := cmp.Or(next(&objects, key), next(&others, key))
		if o == nil || !same(o.data, data) {
			o = w.newObject(ledger, key, data)
		}
		if o.Kind == objstore.KeyFile {
			t.objects = append(t.objects, o)
		} else {
			t.others = append(t.others, o)
		}
	})
	if last := w.storeRead.truth; last != nil && slices.Equal(t.others, last.others) {
		t.facts = last.facts
	}
	return t
}

// next takes the object with the key off a list, with all that come before it; nil if it has none.
func next(list *[]*object, key string) *object {
	for len(*list) > 0 {
		switch first := (*list)[0]; cmp.Compare(first.key, key) {
		case 0:
			*list = (*list)[1:]
			return first
		case 1:
			return nil
		}
		*list = (*list)[1:]
	}
	return nil
}

func (w *World) newObject(ledger, key string, data []byte) *object {
	k, _ := w.parseKey(ledger, key)
	return &object{key: key, Key: k, data: data, sum: sha256.Sum256(data)}
}

// parseKey takes a key apart; ok is false, and its kind empty, if it is none of tierd's. A world
// has one ledger id.
func (w *World) parseKey(ledger, key string) (k objstore.Key, ok bool) {
	k, known := w.storeRead.parsed[key]
	if !known {
		keys, err := objstore.NewKeys(ledger)
		must(err)
		if k, err = keys.Parse(key); err != nil {
			k = objstore.Key{}
		}
		w.storeRead.parsed[key] = k
	}
	return k, k.Kind != ""
}

// same reports whether the two are the same bytes in the same place.
func same(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// file is the object of a file of a segment; nil where there is none.
func (t *storeTruth) file(k tier.ObjectKey) (key string, o *object) {
	key, ok := t.w.storeRead.names[k]
	if !ok {
		var err error
		key, err = t.keys.File(k)
		must(err)
		t.w.storeRead.names[k] = key
	}
	i, found := slices.BinarySearchFunc(t.objects, key, func(o *object, key string) int {
		return cmp.Compare(o.key, key)
	})
	if !found {
		return key, nil
	}
	return key, t.objects[i]
}

// manifestTruth is what a manifest says, and of which objects.
type manifestTruth struct {
	of    []*object
	facts []tier.Fact
	adds  map[tier.AttemptID][]*tier.Fact // those of copies
	clips []*tier.Fact
}

// manifest is what the store's own manifest says of a log, without the ledger's help.
func (t *storeTruth) manifest(id tier.LogID) *manifestTruth {
	if m := t.facts[id]; m != nil {
		return m
	}
	var of []*object
	for _, o := range t.others {
		if o.Log == id {
			of = append(of, o)
		}
	}
	m := t.w.manifests[id]
	if m == nil || !slices.Equal(m.of, of) {
		m = &manifestTruth{of: of, facts: manifestOf(of, t.ledger),
			adds: map[tier.AttemptID][]*tier.Fact{}}
		for i := range m.facts {
			f := &m.facts[i]
			if f.Add != nil {
				m.adds[f.Add.Attempt] = append(m.adds[f.Add.Attempt], f)
			}
			if f.Clip != nil {
				m.clips = append(m.clips, f)
			}
		}
		t.w.manifests[id] = m
	}
	t.facts[id] = m
	return m
}

// listed is the manifest as the process reads it.
func (t *storeTruth) listed(id tier.LogID) []tier.Fact {
	facts, _, err := t.store.Manifest(context.Background(), id)
	must(err)
	return facts
}

// proves says whether the store holds exactly these bytes as the named file of the segment, by an
// object that a readable manifest entry names with its digest. It returns what is missing; "" is
// nothing.
func (t *storeTruth) proves(f fileName, data []byte) string {
	missing := "the store has no object with its bytes"
	for _, o := range t.objects {
		same := o.Base == f.base && o.Log == f.log && o.Name == f.name && bytes.Equal(o.data, data)
		if !same {
			continue
		}
		if missing = t.names(o); missing == "" {
			break
		}
	}
	return missing
}

// names says whether a readable manifest entry names the object with its digest. It returns what is
// missing; "" is nothing.
func (t *storeTruth) names(o *object) string {
	missing := "no readable manifest entry names its copy"
	m := t.manifest(o.Log)
	for _, fact := range m.adds[o.Attempt] {
		if fact.Epoch != o.Epoch {
			continue
		}
		if m.clipped(fact) {
			missing = "its copy is of a lineage that the log has left"
			continue
		}
		for _, named := range fact.Add.Content.Files {
			if named.Name == o.Name && named.SHA256 == o.sum && named.Size == int64(len(o.data)) {
				return ""
			}
		}
	}
	return missing
}

// clipped reports whether the manifest itself cuts the copy off.
func (m *manifestTruth) clipped(f *tier.Fact) bool {
	return slices.ContainsFunc(m.clips, func(c *tier.Fact) bool {
		return f.Position < c.Position && *c.Clip < f.Add.Content.Range.Next
	})
}
