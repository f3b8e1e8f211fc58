package daemon

import (
	"strings"

	"github.com/tierd/tierd/runtime/broker"
	"github.com/tierd/tierd/runtime/config"
)

// brokerConfig is how the cluster of a source is reached, in the adapter's words.
func brokerConfig(b config.Broker) broker.Config {
	return broker.Config{
		Bootstrap: strings.Split(b.Bootstrap, ","),
		TLS: broker.TLS{Enable: b.TLS.Enable, CAFile: b.TLS.CAFile, CertFile: b.TLS.CertFile,
			KeyFile: b.TLS.KeyFile, ServerName: b.TLS.ServerName},
		SASL: broker.SASL{Mechanism: b.SASL.Mechanism, Username: b.SASL.Username,
			Password: string(b.SASL.Password), PasswordFile: b.SASL.PasswordFile},
	}
}
