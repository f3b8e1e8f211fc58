package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tierd/tierd/runtime/tier"
)

// Broker is how the Kafka cluster of a source is reached. The zero Broker is none. Values can be
// compared with ==.
type Broker struct {
	// Bootstrap are the addresses to begin with, each host:port, separated by commas.
	Bootstrap string
	TLS       BrokerTLS
	SASL      BrokerSASL
}

// BrokerTLS is how connections are encrypted. Paths are absolute; what they name is read when a
// connection is made, so that a renewed certificate needs no restart.
type BrokerTLS struct {
	Enable     bool
	CAFile     string // the authorities that are trusted; empty: the system's
	CertFile   string // the client's certificate; may be empty
	KeyFile    string // and its key
	ServerName string // what the brokers' certificates must name; empty: the host that is dialled
}

// BrokerSASL is who tierd says that it is. An empty Mechanism is nobody.
type BrokerSASL struct {
	Mechanism    string // one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512
	Username     string
	Password     Secret
	PasswordFile string // absolute; a newline at its end is no part of the password

	reference string // what stands in the file in the place of the password
}

// Secret is a text that is never printed.
type Secret string

// String hides it.
func (Secret) String() string { return redacted }

// GoString hides it.
func (Secret) GoString() string { return redacted }

// The ways to authenticate that tierd knows.
const (
	SASLPlain       = "PLAIN"
	SASLScramSHA256 = "SCRAM-SHA-256"
	SASLScramSHA512 = "SCRAM-SHA-512"
)

// readBroker reads the broker of a source.
func (d *decoder) readBroker(b *Broker) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in kafka"
		seen := d.object(n, where, []field{
			{"bootstrap", value(d, "bootstrap", &b.Bootstrap, bootstrap)},
			{"tls", d.readBrokerTLS(&b.TLS)},
			{"sasl", d.readBrokerSASL(&b.SASL)},
		})
		d.require(n, where, seen, "bootstrap")
	}
}

// bootstrap reads one address or more, separated by commas.
func bootstrap(n *yaml.Node) (string, error) {
	s, err := text(n)
	if err != nil {
		return "", err
	}
	list := strings.Split(s, ",")
	for i, one := range list {
		list[i] = strings.TrimSpace(one)
		if err := hostPort(list[i], `such as "kafka-1:9092,kafka-2:9092"`); err != nil {
			return "", err
		}
	}
	return strings.Join(list, ","), nil
}

func (d *decoder) readBrokerTLS(t *BrokerTLS) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in tls"
		t.Enable = true
		seen := d.object(n, where, []field{
			{"ca_file", value(d, "ca_file", &t.CAFile, d.path)},
			{"cert_file", value(d, "cert_file", &t.CertFile, d.path)},
			{"key_file", value(d, "key_file", &t.KeyFile, d.path)},
			{"server_name", value(d, "server_name", &t.ServerName, text)},
		})
		if seen["cert_file"] != nil || seen["key_file"] != nil {
			d.require(n, where, seen, "cert_file", "key_file")
		}
	}
}

func (d *decoder) readBrokerSASL(s *BrokerSASL) func(*yaml.Node) {
	return func(n *yaml.Node) {
		const where = " in sasl"
		seen := d.object(n, where, []field{
			{"mechanism", value(d, "mechanism", &s.Mechanism,
				oneOf(SASLPlain, SASLScramSHA256, SASLScramSHA512))},
			{"username", value(d, "username", &s.Username, text)},
			{"password", d.readPassword(s)},
			{"password_file", value(d, "password_file", &s.PasswordFile, d.path)},
		})
		d.require(n, where, seen, "mechanism", "username")
		switch inline, file := seen["password"], seen["password_file"]; {
		case inline != nil && file != nil:
			d.problem(file, "keep one of them", "both password and password_file")
		case inline == nil && file == nil && n.Kind == yaml.MappingNode:
			d.problem(n, "add password_file, or password: ${NAME}", "sasl: the password is missing")
		}
	}
}

// readPassword reads a text in which references to the environment are replaced.
func (d *decoder) readPassword(s *BrokerSASL) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if _, err := text(n); err != nil {
			d.problem(n, "write ${NAME} for a variable of the environment",
				"password: want a text, which is not shown here")
			return
		}
		s.Password = Secret(d.expand(n).Value)
		if s.reference = redacted; envName.MatchString(n.Value) {
			s.reference = n.Value
		}
	}
}

// checkBroker says which sources have a broker, and which need one.
func (d *decoder) checkBroker(s *Source, way Place, seen map[string]*yaml.Node) {
	switch records := s.LocalDelete == tier.LocalDeleteRecords; {
	case records && s.Layout != tier.LayoutKafka && s.Layout != "":
		d.problemAt(way, "use never or unlink", "local_delete: only a Kafka broker has "+
			"delete-records, and this source is %s", s.Layout)
	case records && seen["kafka"] == nil:
		d.problemAt(way, `add kafka: {bootstrap: "host:port"}`, "local_delete: delete-records asks "+
			"the broker, and the source does not say where it is")
	}
	if k := seen["kafka"]; k != nil && s.Layout != tier.LayoutKafka && s.Layout != "" {
		d.problem(k, "remove it", "kafka: only kafka sources have a broker, and this one is %s",
			s.Layout)
	}
}

// print gives the broker as the file has it, without its secrets; nil where there is none.
func (b Broker) print() *yaml.Node {
	if b.Bootstrap == "" {
		return nil
	}
	var tls, sasl *yaml.Node
	if t := b.TLS; t.Enable {
		tls = mapping("ca_file", optional(t.CAFile), "cert_file", optional(t.CertFile),
			"key_file", optional(t.KeyFile), "server_name", optional(t.ServerName))
	}
	if s := b.SASL; s.Mechanism != "" {
		sasl = mapping("mechanism", scalar(s.Mechanism), "username", scalar(s.Username),
			"password", optional(s.reference), "password_file", optional(s.PasswordFile))
	}
	return mapping("bootstrap", scalar(b.Bootstrap), "tls", tls, "sasl", sasl)
}
