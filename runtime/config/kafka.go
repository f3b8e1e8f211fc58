package config

import (
	"fmt"
	"net"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Kafka is the read-only Kafka endpoint.
type Kafka struct {
	Listen string // host:port; empty is off
	// Advertised is the host:port that clients are told to go on with; empty is the address that
	// they came to.
	Advertised string
	TLS        KafkaTLS
	// UsersFile is the absolute path of a file of names and bcrypt hashes; empty lets everybody in.
	UsersFile      string
	MaxConnections int // at one time
}

// KafkaTLS is how connections to the endpoint are encrypted; the zero value does not. Paths are
// absolute; what they name is read for each connection, so that a renewed certificate needs no
// restart.
type KafkaTLS struct {
	CertFile, KeyFile string
	ClientCAFile      string // if set, clients show a certificate of one of these authorities
}

// Enabled reports whether connections are encrypted.
func (t KafkaTLS) Enabled() bool { return t.CertFile != "" }

const defaultKafkaConnections = 1000

func (d *decoder) readKafka(k *Kafka) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in kafka"
		listen, connections := setting[string]{}, int64(defaultKafkaConnections)
		seen := d.object(n, where, []field{
			{"listen", placed(d, "listen", &listen, address)},
			{"advertised", value(d, "advertised", &k.Advertised, advertised)},
			{"tls", d.noted(KeyKafkaTLS, d.readKafkaTLS(&k.TLS))},
			{"users_file", d.noted(KeyUsersFile, value(d, "users_file", &k.UsersFile, d.path))},
			{"max_connections", value(d, "max_connections", &connections, count(1, 1e5))},
		})
		d.require(n, where, seen, "listen")
		k.Listen, k.MaxConnections = listen.value, int(connections)
		host, _, err := net.SplitHostPort(k.Listen)
		if ip := net.ParseIP(host); err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
			return
		}
		switch {
		case k.UsersFile == "" && k.TLS.ClientCAFile == "":
			d.warn(listen.place, "set kafka.users_file, or listen on 127.0.0.1",
				"listen %s: whoever reaches this address can read every topic", k.Listen)
		case k.UsersFile != "" && !k.TLS.Enabled():
			d.warn(listen.place, "set kafka.tls, or listen on 127.0.0.1",
				"listen %s: passwords cross the network as they are", k.Listen)
		}
	}
}

func (d *decoder) readKafkaTLS(t *KafkaTLS) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in tls"
		seen := d.object(n, where, []field{
			{"cert_file", value(d, "cert_file", &t.CertFile, d.path)},
			{"key_file", value(d, "key_file", &t.KeyFile, d.path)},
			{"client_ca_file", value(d, "client_ca_file", &t.ClientCAFile, d.path)},
		})
		d.require(n, where, seen, "cert_file", "key_file")
	}
}

// advertised reads a host:port that others can connect to.
func advertised(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	return s, hostPort(s, `such as "archive.example.com:9192"`)
}

// hostPort says what is wrong with the address of somebody else; example is one that is right.
func hostPort(s, example string) error {
	host, port, err := net.SplitHostPort(s)
	number, errPort := strconv.ParseUint(port, 10, 16)
	if err != nil || host == "" || errPort != nil || number == 0 {
		return &hinted{fmt.Sprintf("want host:port, got %q", s), example}
	}
	return nil
}

func (k Kafka) print() *yaml.Node {
	if k.Listen == "" {
		return nil
	}
	tls := (*yaml.Node)(nil)
	if k.TLS.Enabled() {
		tls = mapping("cert_file", scalar(k.TLS.CertFile), "key_file", scalar(k.TLS.KeyFile),
			"client_ca_file", optional(k.TLS.ClientCAFile))
	}
	return mapping("listen", scalar(k.Listen), "advertised", optional(k.Advertised), "tls", tls,
		"users_file", optional(k.UsersFile), "max_connections", number(int64(k.MaxConnections)))
}
