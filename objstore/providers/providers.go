// Package providers opens the bucket that the configuration names: FILESYSTEM, which is ours, and
// every provider of thanos objstore through its client factory.
//
// It links all their SDKs, which make four fifths of the binary, so only the commands import it.
package providers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/thanos-io/objstore"
	"github.com/thanos-io/objstore/client"
	"github.com/thanos-io/objstore/providers/azure"
	"github.com/thanos-io/objstore/providers/bos"
	"github.com/thanos-io/objstore/providers/cos"
	"github.com/thanos-io/objstore/providers/gcs"
	"github.com/thanos-io/objstore/providers/obs"
	"github.com/thanos-io/objstore/providers/oci"
	"github.com/thanos-io/objstore/providers/oss"
	"github.com/thanos-io/objstore/providers/s3"
	"github.com/thanos-io/objstore/providers/swift"
	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/objstore/providers/filesystem"
	"github.com/tierd/tierd/runtime/vfs"
)

// component is what the clients call themselves in front of the store: thanos-tierd.
const component = "tierd"

// provider is what is known of a provider before it is opened.
type provider struct {
	kind objstore.ObjProvider
	// config is the struct that the bucket's own part is decoded into.
	config reflect.Type
	// required are the keys without which the client is made but of no use, or not made and the
	// error does not say which key it was.
	required []string
}

// filesystemConfig is the own part of a FILESYSTEM bucket.
type filesystemConfig struct {
	// Directory is made if it is missing; what it lies in is not.
	Directory string `yaml:"directory"`
}

// all returns the providers, by name.
func all() []provider {
	keys := func(keys ...string) []string { return keys }
	return []provider{
		{objstore.ALIYUNOSS, reflect.TypeFor[oss.Config](),
			keys("bucket", "endpoint", "access_key_id", "access_key_secret")},
		{objstore.AZURE, reflect.TypeFor[azure.Config](), keys("storage_account", "container")},
		{objstore.BOS, reflect.TypeFor[bos.Config](),
			keys("bucket", "endpoint", "access_key", "secret_key")},
		{objstore.COS, reflect.TypeFor[cos.Config](), keys("secret_id", "secret_key")},
		{objstore.FILESYSTEM, reflect.TypeFor[filesystemConfig](), keys("directory")},
		{objstore.GCS, reflect.TypeFor[gcs.Config](), keys("bucket")},
		{objstore.OBS, reflect.TypeFor[obs.Config](),
			keys("bucket", "endpoint", "access_key", "secret_key")},
		{objstore.OCI, reflect.TypeFor[oci.Config](), keys("bucket", "provider")},
		{objstore.S3, reflect.TypeFor[s3.Config](), keys("bucket", "endpoint")},
		{objstore.SWIFT, reflect.TypeFor[swift.Config](), keys("container_name", "auth_url")},
	}
}

// lookup finds a provider; as in thanos, case does not matter.
func lookup(kind string) (provider, bool) {
	for _, p := range all() {
		if strings.EqualFold(string(p.kind), kind) {
			return p, true
		}
	}
	return provider{}, false
}

// Options are what a bucket needs and the configuration does not say.
type Options struct {
	// Logger gets what the clients log; nil discards it.
	Logger *slog.Logger
	// Process names the temporary files of a FILESYSTEM bucket. It must be random.
	Process string
}

// transportWrapper puts itself between a client and its store.
type transportWrapper = func(http.RoundTripper) http.RoundTripper

// document is the bucket as thanos writes it.
type document struct {
	Type   string    `yaml:"type"`
	Config yaml.Node `yaml:"config"`
	Prefix string    `yaml:"prefix"`
}

// New opens the bucket that doc describes: a YAML document with type, config and prefix. AZURE, OCI
// and SWIFT are asked something at once, and AZURE makes a container that is missing, unless
// storage_create_container is false. Errors do not hold secrets of doc.
func New(doc []byte, o Options) (objstore.Bucket, error) {
	return open(doc, o, nil)
}

func open(doc []byte, o Options, wrap transportWrapper) (objstore.Bucket, error) {
	var d document
	decoder := yaml.NewDecoder(bytes.NewReader(doc))
	decoder.KnownFields(true)
	if decoder.Decode(&d) != nil {
		// The decoder's error may quote what it did not understand, and that may be a secret.
		return nil, errors.New("bucket: want a YAML mapping of type, config and prefix")
	}
	if problems := Check(d.Type, &d.Config); len(problems) > 0 {
		return nil, fmt.Errorf("bucket: %w", problems[0])
	}
	b, err := d.open(doc, o, wrap)
	if err != nil {
		return nil, withoutSecrets(fmt.Errorf("open %s bucket: %w", d.Type, err), &d.Config)
	}
	return b, nil
}

func (d *document) open(doc []byte, o Options, wrap transportWrapper) (objstore.Bucket, error) {
	if strings.EqualFold(d.Type, string(objstore.S3)) {
		var err error
		if doc, err = d.askedOnce(); err != nil {
			return nil, err
		}
	}
	if !strings.EqualFold(d.Type, string(objstore.FILESYSTEM)) {
		return client.NewBucket(goKit(o.Logger), doc, component, wrap)
	}
	if o.Process == "" {
		return nil, errors.New("Options.Process is empty")
	}
	var c filesystemConfig
	if err := d.Config.Decode(&c); err != nil {
		return nil, err
	}
	dir, err := openDir(c.Directory)
	if err != nil {
		return nil, err
	}
	return objstore.NewPrefixedBucket(filesystem.New(dir, c.Directory, o.Process), d.Prefix), nil
}

// askedOnce is the document of an S3 bucket with max_retries 1, unless it says otherwise. The
// client would ask ten times, with pauses that grow, also where a session is over; whoever waits
// for it loses patience first, and never learns why. Package retry asks again, and keeps the
// reason.
func (d *document) askedOnce() ([]byte, error) {
	config := d.Config
	for i := 0; i+1 < len(config.Content); i += 2 {
		if config.Content[i].Value == "max_retries" {
			return yaml.Marshal(d)
		}
	}
	config.Content = append(slices.Clip(config.Content),
		&yaml.Node{Kind: yaml.ScalarNode, Value: "max_retries"},
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: "1"})
	return yaml.Marshal(&document{Type: d.Type, Config: config, Prefix: d.Prefix})
}

// openDir opens the directory, and makes it, durably, if only its last step is missing. More is not
// made: rather an error than a bucket beside the mount point that it should be in.
func openDir(name string) (*vfs.OS, error) {
	parent := filepath.Dir(filepath.Clean(name))
	dir, err := vfs.OpenOS(name)
	if err == nil {
		// Whoever made it may have been killed before this. It may also be somebody else's
		// directory in one that must not be opened, which is no reason not to use it.
		_ = syncDir(parent)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	err = os.Mkdir(name, 0o777)
	if _, above := os.Stat(parent); errors.Is(above, fs.ErrNotExist) {
		return nil, fmt.Errorf("directory %s: %s has to be there: %w", name, parent, fs.ErrNotExist)
	}
	if path := (*fs.PathError)(nil); errors.As(err, &path) && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("directory %s: it is not there, and cannot be made in %s: %w", name,
			parent, path.Err)
	}
	if err := syncDir(parent); err != nil {
		return nil, err
	}
	return vfs.OpenOS(name)
}

func syncDir(name string) error {
	dir, err := vfs.OpenOS(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync("."), dir.Close())
}
