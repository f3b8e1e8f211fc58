package providers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-kit/log/level"
	"github.com/thanos-io/objstore"
	"go.yaml.in/yaml/v3"
)

// fakeStore answers what providers ask when they are made: OCI for its namespace, SWIFT for a token
// and its container, AZURE for its container. Nothing leaves the process.
type fakeStore struct{}

func (fakeStore) RoundTrip(r *http.Request) (*http.Response, error) {
	header := http.Header{
		"Content-Type":             {"application/json"},
		"X-Storage-Url":            {"http://127.0.0.1/storage"},
		"X-Auth-Token":             {"token"},
		"X-Container-Object-Count": {"0"},
		"X-Container-Bytes-Used":   {"0"},
	}
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     header,
		Body:       io.NopCloser(strings.NewReader(`"namespace"`)),
		Request:    r,
	}, nil
}

// TestEveryProviderOpens gives each provider as little as it takes.
func TestEveryProviderOpens(t *testing.T) {
	t.Parallel()
	key := privateKey(t)
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "private_key_id": "k", "private_key": key,
		"client_email": "tierd@p.example", "token_uri": "http://127.0.0.1/token",
	})
	check(t, err)
	configs := map[objstore.ObjProvider]map[string]any{
		objstore.ALIYUNOSS: {"bucket": "bkt", "endpoint": "http://127.0.0.1", "access_key_id": "id",
			"access_key_secret": "secret"},
		objstore.AZURE: {"storage_account": "account", "container": "bkt",
			"storage_account_key": "c2VjcmV0"},
		objstore.BOS: {"bucket": "bkt", "endpoint": "http://127.0.0.1", "access_key": "access",
			"secret_key": "secret"},
		objstore.COS: {"bucket": "bkt", "app_id": "1", "region": "ap-beijing", "secret_id": "id",
			"secret_key": "secret"},
		objstore.FILESYSTEM: {"directory": filepath.Join(t.TempDir(), "bkt")},
		objstore.GCS:        {"bucket": "bkt", "service_account": string(account)},
		objstore.OBS: {"bucket": "bkt", "endpoint": "http://127.0.0.1", "access_key": "access",
			"secret_key": "secret"},
		objstore.OCI: {"provider": "raw", "bucket": "bkt", "tenancy_ocid": "t", "user_ocid": "u",
			"region": "eu-frankfurt-1", "fingerprint": "f", "privatekey": key},
		objstore.S3: {"bucket": "bkt", "endpoint": "127.0.0.1:1", "access_key": "access",
			"secret_key": "secret"},
		objstore.SWIFT: {"auth_version": 1, "auth_url": "http://127.0.0.1/auth", "username": "u",
			"password": "secret", "container_name": "bkt"},
	}
	for _, p := range all() {
		t.Run(string(p.kind), func(t *testing.T) {
			t.Parallel()
			doc := marshal(t, map[string]any{
				"type": p.kind, "config": configs[p.kind], "prefix": "some/prefix",
			})
			wrap := func(http.RoundTripper) http.RoundTripper { return fakeStore{} }
			b, err := open(doc, Options{Process: "p"}, wrap)
			check(t, err)
			if b.Provider() != p.kind || !strings.HasSuffix(b.Name(), "bkt") {
				t.Errorf("opened %s bucket %q", b.Provider(), b.Name())
			}
			check(t, b.Close())
		})
	}
}

func TestFilesystem(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	doc := marshal(t, map[string]any{
		"type":   "filesystem",
		"config": map[string]any{"directory": filepath.Join(root, "bucket")},
		"prefix": "/some/prefix/",
	})
	for range 2 { // the directory is made, and then there
		b, err := New(doc, Options{Process: "p"})
		check(t, err)
		check(t, b.Upload(context.Background(), "a/object", strings.NewReader("content")))
		check(t, b.Close())
	}
	got, err := os.ReadFile(filepath.Join(root, "bucket", "some", "prefix", "a", "object"))
	check(t, err)
	if string(got) != "content" {
		t.Errorf("got %q", got)
	}
}

func TestFilesystemIsNotMadeBesideItsMountPoint(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	doc := marshal(t, map[string]any{
		"type":   "FILESYSTEM",
		"config": map[string]any{"directory": filepath.Join(root, "absent", "bucket")},
	})
	_, err := New(doc, Options{Process: "p"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "has to be there") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(root, "absent")); err == nil {
		t.Error("the directory above was made")
	}
}

// TestFilesystemCannotBeMade: the directory above is there, and takes none.
func TestFilesystemCannotBeMade(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self"); err != nil {
		return // another system
	}
	doc := marshal(t, map[string]any{"type": "FILESYSTEM",
		"config": map[string]any{"directory": "/proc/bucket"}})
	const want = "directory /proc/bucket: it is not there, and cannot be made in /proc: " +
		"no such file or directory"
	if _, err := New(doc, Options{Process: "p"}); err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestErrorsOfNew(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ doc, want string }{
		"no mapping":     {"type", "bucket: want a YAML mapping of type, config and prefix"},
		"unknown key":    {"typ: S3", "bucket: want a YAML mapping of type, config and prefix"},
		"no type":        {"config: {}", `bucket: type: there is no provider ""; known are`},
		"unknown in own": {"type: S3\nconfig: {buckt: b}", `bucket: 2:10: unknown key "buckt"`},
		"missing": {"type: S3\nconfig: {endpoint: e}",
			`bucket: missing key "bucket" in the config of a bucket of type S3`},
		"no name of the process": {"type: FILESYSTEM\nconfig: {directory: d}",
			"open FILESYSTEM bucket: Options.Process is empty"},
		"the provider's own": {
			"type: S3\nconfig: {bucket: b, endpoint: e, secret_key: hunter22}",
			"open S3 bucket: create S3 client: no s3 access_key specified"},
		"the provider's own, with a secret": {
			"type: AZURE\nconfig: {storage_account: a, container: c, " +
				"storage_account_key: h%unter22}",
			"open AZURE bucket: create AZURE client"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New([]byte(tt.doc), Options{})
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "unter22") {
				t.Errorf("error %v holds the secret", err)
			}
		})
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := goKit(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	check(t, level.Debug(l).Log("msg", "creating client", "provider", "oci", "n", 1))
	check(t, level.Info(l).Log("msg", "made"))
	check(t, level.Warn(l).Log("msg", "deprecated", "err", errors.New("old")))
	check(t, level.Error(l).Log("msg", "gone", "odd"))
	check(t, l.Log("msg", "no level"))
	check(t, goKit(nil).Log("msg", "nobody listens"))
	want := `level=DEBUG msg="creating client" provider=oci n=1
level=INFO msg=made
level=WARN msg=deprecated err=old
level=ERROR msg=gone odd=(MISSING)
level=INFO msg="no level"
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func privateKey(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(t, err)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return string(pem.EncodeToMemory(block))
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	doc, err := yaml.Marshal(v)
	check(t, err)
	return doc
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
