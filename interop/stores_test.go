package interop_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gokit "github.com/go-kit/log"
	"github.com/thanos-io/objstore"
	"github.com/thanos-io/objstore/client"
)

// store is a running store.
type store struct {
	name    string
	address string // that it listens on; empty where it does not
	dir     string // where it keeps its buckets, if that is known
	// signsHost is set where a signature covers the Host header.
	signsHost bool
	// bucket is the bucket's part of a configuration that reaches the store at the address.
	bucket func(address string, c credentials) string
	// env is the environment that a client needs besides.
	env func(address string) []string
	// keys are of all objects that it holds, and read reads one, past tierd.
	keys func(t *testing.T) []string
	read func(t *testing.T, key string) []byte
}

// credentials are those that a client shows.
type credentials struct{ wrong bool }

// records are the keys of the objects that are files of segments with records.
func (s *store) records(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(s.keys(t), func(key string) bool { return path.Ext(key) != ".log" })
}

// reach lets the store be looked at by the client library that tierd uses too.
func (s *store) reach() {
	bucket := func(t *testing.T) objstore.Bucket {
		t.Helper()
		text := s.bucket(s.address, credentials{})
		b, err := client.NewBucket(gokit.NewNopLogger(), []byte(text), "interop", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	s.keys = func(t *testing.T) (keys []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := bucket(t).Iter(ctx, "", func(key string) error {
			keys = append(keys, key)
			return nil
		}, objstore.WithRecursiveIter())
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	s.read = func(t *testing.T, key string) []byte {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		r, err := bucket(t).Get(ctx, key)
		if err != nil {
			t.Fatalf("get %s: %v", key, err)
		}
		defer func() { _ = r.Close() }()
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("get %s: %v", key, err)
		}
		return data
	}
}

func filesystem(t *testing.T) *store {
	dir := filepath.Join(t.TempDir(), "bucket")
	s := &store{name: "FILESYSTEM", env: func(string) []string { return nil }}
	s.bucket = func(string, credentials) string {
		return fmt.Sprintf("{type: FILESYSTEM, config: {directory: %s}}", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.reach()
	return s
}

func s3(t *testing.T) *store {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &store{name: "S3", address: freeAddress(t), dir: filepath.Join(dir, "data"), signsHost: true,
		env: func(string) []string { return nil }}
	start(t, dir, "versitygw", nil, filepath.Join(systems, "bin", "versitygw"), "--port", s.address,
		"--access", "interop", "--secret", "interop-secret", "posix",
		s.dir).listens(s.address)
	s.bucket = func(address string, c credentials) string {
		secret := "interop-secret"
		if c.wrong {
			secret = "another-secret"
		}
		return fmt.Sprintf("{type: S3, config: {bucket: archive, endpoint: %q, insecure: true, "+
			"access_key: interop, secret_key: %s, region: us-east-1, "+
			"bucket_lookup_type: path}}", address, secret)
	}
	s.reach()
	return s
}

// azureKey is the key of Azurite's only account, which its documentation names.
const azureKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/" +
	"K1SZFPTOtr/KBHBeksoGMGw=="

func azure(t *testing.T) *store {
	dir := t.TempDir()
	s := &store{name: "AZURE", address: freeAddress(t), env: func(string) []string { return nil }}
	host, port, _ := strings.Cut(s.address, ":")
	start(t, dir, "azurite", nil, "node", filepath.Join(systems,
		"azurite/node_modules/azurite/dist/src/blob/main.js"), "--location", dir, "--blobHost", host,
		"--blobPort", port, "--skipApiVersionCheck", "--disableTelemetry").listens(s.address)
	s.bucket = func(address string, c credentials) string {
		key := azureKey
		if c.wrong {
			key = strings.Replace(key, "Eby8", "Eby9", 1)
		}
		return fmt.Sprintf("{type: AZURE, config: {container: archive, "+
			"storage_create_container: true, storage_account: devstoreaccount1, "+
			"storage_connection_string: \"DefaultEndpointsProtocol=http;"+
			"AccountName=devstoreaccount1;AccountKey=%s;"+
			"BlobEndpoint=http://%s/devstoreaccount1;\"}}", key, address)
	}
	s.reach()
	return s
}

func gcs(t *testing.T) *store {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data", "archive"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := &store{name: "GCS", address: freeAddress(t)}
	host, port, _ := strings.Cut(s.address, ":")
	start(t, dir, "fake-gcs-server", nil, filepath.Join(systems, "bin", "fake-gcs-server"),
		"-scheme", "http", "-host", host, "-port", port, "-public-host", s.address,
		"-filesystem-root", filepath.Join(dir, "data"), "-log-level", "warn").listens(s.address)
	account := googleAccount(t)
	s.env = func(address string) []string { return []string{"STORAGE_EMULATOR_HOST=" + address} }
	s.bucket = func(_ string, c credentials) string {
		return fmt.Sprintf("{type: GCS, config: {bucket: archive, service_account: %q}}",
			account(c))
	}
	s.keys = func(t *testing.T) []string { return googleKeys(t, s.address) }
	s.read = func(t *testing.T, key string) []byte { return get(t, googleObject(s.address, key)) }
	return s
}

// stores starts one of each kind.
func stores() map[string]func(*testing.T) *store {
	return map[string]func(*testing.T) *store{
		"FILESYSTEM": filesystem, "S3": s3, "AZURE": azure, "GCS": gcs,
	}
}

// config is a configuration with two plain logs; more are lines of it.
func (s *store) config(address string, c credentials, more ...string) string {
	return strings.Join(append([]string{
		"sources: [{name: wal, layout: plain, path: ./wal}]",
		"bucket: " + s.bucket(address, c),
		"http: {listen: off}", "interval: 200ms"}, more...), "\n")
}
