package providers

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const knownTypes = `known are ALIYUNOSS, AZURE, BOS, COS, FILESYSTEM, GCS, OBS, OCI, S3, SWIFT`

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, kind, config string
		want               []string
	}{
		{"right", "S3", "bucket: b\nendpoint: e\nhttp_config: {idle_conn_timeout: 5s}", nil},
		{"case of the type", "s3", "bucket: b\nendpoint: e", nil},
		{"lookup type", "S3", "{bucket: b, endpoint: e, bucket_lookup_type: path}", nil},
		{"null is the default", "S3", "bucket: b\nendpoint: e\nhttp_config:", nil},
		{"numbers are texts, too", "S3", "{bucket: 1, endpoint: e, secret_key: 0123}", nil},
		{"free keys", "S3", "{bucket: b, endpoint: e, put_user_metadata: {any: key}}", nil},
		{"environment", "S3", "{bucket: '${B}', endpoint: e, part_size: '${SIZE}'}", nil},
		{"alias", "S3", "{bucket: &b b, endpoint: *b}", nil},
		{"unknown type", "S4", "{}", []string{
			`type: there is no provider "S4"; did you mean "S3"? ` + knownTypes}},
		{"no type", "", "{}", []string{`type: there is no provider ""; ` + knownTypes}},
		{"misspelt", "FILESYSTEM", "directory: d\ndirectorry: d", []string{
			`2:1: unknown key "directorry" in the config of a bucket of type FILESYSTEM; ` +
				`did you mean "directory"? known are directory`}},
		{"ignored by thanos", "BOS",
			"{bucket: b, endpoint: e, access_key: a, secret_key: s, region: r}", []string{
				`1:56: unknown key "region" in the config of a bucket of type BOS; ` +
					`known are access_key, bucket, endpoint, secret_key`}},
		{"nested", "S3",
			"{bucket: b, endpoint: e,\nhttp_config: {tls_config: {ca_fil: x}}}", []string{
				`2:28: unknown key "ca_fil" in the config of a bucket of type S3; ` +
					`did you mean "ca_file"? known are ca_file, cert_file, insecure_skip_verify, ` +
					`key_file, server_name`}},
		{"not to be set from YAML", "GCS", "{bucket: b, no_auth: true}", []string{
			`1:13: unknown key "no_auth" in the config of a bucket of type GCS; known are ` +
				`bucket, chunk_size_bytes, grpc_conn_pool_size, http_config, max_retries, ` +
				`service_account, use_grpc`}},
		{"wrong types", "S3", "bucket: []\nendpoint: e\ninsecure: maybe\npart_size: -1\n" +
			"http_config: {idle_conn_timeout: soon}\nsse_config: on\nput_user_metadata: 1\n" +
			"bucket_lookup_type: guess", []string{
			`1:9: bucket: want a text`,
			`3:11: insecure: want true or false`,
			`4:12: part_size: want a whole number that fits`,
			`5:34: idle_conn_timeout: want a duration such as 90s`,
			`6:13: sse_config: want a mapping`,
			`7:20: put_user_metadata: want a mapping`,
			`8:21: bucket_lookup_type: want auto, virtual-hosted or path`}},
		{"missing beside a wrong type", "S3", "{bucket: [], insecure: maybe}", []string{
			`1:10: bucket: want a text`,
			`1:24: insecure: want true or false`,
			`missing key "endpoint" in the config of a bucket of type S3`}},
		{"twice", "GCS", "bucket: a\nbucket: b", []string{
			`2:1: key "bucket" twice in the config of a bucket of type GCS`}},
		{"not a mapping", "GCS", "just text", []string{"1:1: config: want a mapping"}},
		{"nothing", "FILESYSTEM", "", []string{
			`missing key "directory" in the config of a bucket of type FILESYSTEM`}},
		{"missing and empty", "S3", "{endpoint: ''}", []string{
			`missing key "bucket" in the config of a bucket of type S3`,
			`missing key "endpoint" in the config of a bucket of type S3`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var n yaml.Node
			if err := yaml.Unmarshal([]byte(tt.config), &n); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range Check(tt.kind, &n) {
				got = append(got, p.Error())
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestFieldsAreUnderstood fails when a new version of thanos objstore describes its configuration
// in a way that Check does not read.
func TestFieldsAreUnderstood(t *testing.T) {
	t.Parallel()
	var look func(where string, typ reflect.Type)
	look = func(where string, typ reflect.Type) {
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous || strings.Contains(f.Tag.Get("yaml"), "inline") {
				t.Errorf("%s.%s is part of its parent", where, f.Name)
			}
		}
		for name, typ := range fields(typ) {
			switch typ.Kind() {
			case reflect.Struct:
				look(where+"."+name, typ)
			case reflect.Pointer, reflect.Slice, reflect.Interface:
				t.Errorf("%s.%s is a %s", where, name, typ)
			}
		}
	}
	for _, p := range all() {
		look(string(p.kind), p.config)
		for _, key := range p.required {
			if fields(p.config)[key] == nil {
				t.Errorf("%s requires %q, which it does not know", p.kind, key)
			}
		}
	}
}

func TestSecretsAreBlottedOut(t *testing.T) {
	t.Parallel()
	var n yaml.Node
	config := "{endpoint: host, secret_key: hunter22, access_key: hunter, http_config: " +
		"{tls_config: {key_file: pem-file}}, client_secret: abc}"
	if err := yaml.Unmarshal([]byte(config), &n); err != nil {
		t.Fatal(err)
	}
	err := withoutSecrets(errors.New("host: hunter22 for hunter is no key: abc"), &n)
	want := "host: <redacted> for <redacted> is no key: abc"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	plain := errors.New("nothing to hide")
	if got := withoutSecrets(plain, &n); got != plain {
		t.Errorf("an error without secrets was replaced by %v", got)
	}
}
