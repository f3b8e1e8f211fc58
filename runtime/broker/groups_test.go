package broker

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/tierd/tierd/runtime/tier"
)

// cluster starts a server of the protocol with the topics orders and clicks of three partitions.
func cluster(t *testing.T, options ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(2),
		kfake.SeedTopics(3, "orders", "clicks")}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// commit commits offsets for a group.
func commit(t *testing.T, c Config, group string, at map[string]map[int32]int64) {
	t.Helper()
	options, err := Options(c)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var offsets kadm.Offsets
	for topic, partitions := range at {
		for p, o := range partitions {
			offsets.AddOffset(topic, p, o, -1)
		}
	}
	err = kadm.NewClient(client).CommitAllOffsets(t.Context(), group, offsets)
	if err != nil {
		t.Fatal(err)
	}
}

func log(table, name string) tier.LogID { return tier.LogID{Table: table, Name: name} }

// ask asks with a deadline.
func ask(t *testing.T, c Config, groups ...string) (map[string]Offsets, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return GroupOffsets(ctx, c, groups)
}

// TestGroupOffsets: what groups have committed, by log, and no word of what they have not.
func TestGroupOffsets(t *testing.T) {
	t.Parallel()
	c := Config{Bootstrap: cluster(t).ListenAddrs()}
	commit(t, c, "billing", map[string]map[int32]int64{"orders": {0: 42, 2: 7}, "clicks": {1: 0}})
	commit(t, c, "search", map[string]map[int32]int64{"orders": {0: 9}})
	got, err := ask(t, c, "search", "billing")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Offsets{
		"billing": {log("orders", "0"): 42, log("orders", "2"): 7, log("clicks", "1"): 0},
		"search":  {log("orders", "0"): 9},
	}
	if !maps.EqualFunc(got, want, maps.Equal[Offsets, Offsets]) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestNoAnswer: one group that cannot be told leaves no answer for any.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	secured := cluster(t, kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", "admin", "secret"), kfake.User("PLAIN", "tierd", "secret"))
	open := Config{Bootstrap: cluster(t).ListenAddrs()}
	commit(t, open, "billing", map[string]map[int32]int64{"orders": {0: 42}})
	as := func(user, password string) Config {
		path := filepath.Join(t.TempDir(), "password")
		if password != "none" {
			write(t, path, password)
		}
		return Config{Bootstrap: secured.ListenAddrs(), SASL: SASL{
			Mechanism: "PLAIN", Username: user, PasswordFile: path}}
	}
	commit(t, as("admin", "secret\n"), "billing", map[string]map[int32]int64{"orders": {0: 42}})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		config Config
		group  string
		want   string
	}{
		{"unknown", open, "biling", "group biling: the broker knows no such group"},
		{"unreachable", Config{Bootstrap: []string{nobody}}, "billing", "connection refused"},
		{"not allowed", as("tierd", "secret"), "billing", "GROUP_AUTHORIZATION_FAILED"},
		{"wrong password", as("tierd", "wrong"), "billing", "group billing: "},
		{"no file", as("tierd", "none"), "billing", "no such file"},
		{"no SASL", Config{Bootstrap: secured.ListenAddrs()}, "billing", ""},
		{"no mechanism", Config{Bootstrap: open.Bootstrap, SASL: SASL{Mechanism: "x"}}, "billing",
			`mechanism "x"`},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			got, err := ask(t, x.config, "billing", x.group)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%v, %v; want %q", got, err, x.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
		})
	}
}

// TestOlderBroker: one that answers for a name it never heard of as for a group without offsets.
func TestOlderBroker(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	config := Config{Bootstrap: c.ListenAddrs()}
	commit(t, config, "billing", map[string]map[int32]int64{"orders": {0: 42}})
	c.ControlKey(int16(kmsg.OffsetFetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := r.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, g := range r.(*kmsg.OffsetFetchRequest).Groups {
			answer := kmsg.NewOffsetFetchResponseGroup()
			answer.Group = g.Group
			resp.Groups = append(resp.Groups, answer)
		}
		return resp, nil, true
	})
	got, err := ask(t, config, "billing")
	if err != nil || len(got) != 1 || len(got["billing"]) != 0 {
		t.Errorf("a group that has read nothing: %v, %v", got, err)
	}
	_, err = ask(t, config, "billing", "biling")
	if err == nil || err.Error() != "group biling: the broker knows no such group" {
		t.Errorf("a group that is not there: %v", err)
	}
}

// answers has the cluster answer the requests of one kind. Without an answer the connection ends.
func answers(c *kfake.Cluster, key kmsg.Key, with func(kmsg.Request) kmsg.Response) {
	c.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if resp := with(r); resp != nil {
			return resp, nil, true
		}
		return nil, errors.New("the connection ends"), true
	})
}

// denying makes a cluster of which no group has committed anything, and which denies to know them
// where it is asked by the older protocol.
func denying(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	c := cluster(t, opts...)
	answers(c, kmsg.OffsetFetch, func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.OffsetFetchResponse)
		for _, g := range r.(*kmsg.OffsetFetchRequest).Groups {
			one := kmsg.NewOffsetFetchResponseGroup()
			one.Group = g.Group
			resp.Groups = append(resp.Groups, one)
		}
		return resp
	})
	answers(c, kmsg.DescribeGroups, func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for _, name := range r.(*kmsg.DescribeGroupsRequest).Groups {
			one := kmsg.NewDescribeGroupsResponseGroup()
			one.Group, one.State = name, "Dead"
			resp.Groups = append(resp.Groups, one)
		}
		return resp
	})
	return c
}

// TestNewerGroups: one of the newer protocol that has committed nothing is there, though the broker
// denies it where it is asked as for the others; and a name that it never heard of is not. Where
// there is no answer nobody knows.
func TestNewerGroups(t *testing.T) {
	t.Parallel()
	c := denying(t)
	answers(c, kmsg.ConsumerGroupDescribe, func(r kmsg.Request) kmsg.Response {
		resp := r.ResponseKind().(*kmsg.ConsumerGroupDescribeResponse)
		for _, name := range r.(*kmsg.ConsumerGroupDescribeRequest).Groups {
			one := kmsg.NewConsumerGroupDescribeResponseGroup()
			one.Group, one.State = name, "Stable"
			switch name {
			case "biling":
				one.ErrorCode = kerr.GroupIDNotFound.Code
			case "broken":
				one.ErrorCode = kerr.UnknownServerError.Code
			case "cut off":
				return nil
			}
			resp.Groups = append(resp.Groups, one)
		}
		return resp
	})
	config := Config{Bootstrap: c.ListenAddrs()}
	if got, err := ask(t, config, "billing"); err != nil || len(got["billing"]) != 0 {
		t.Errorf("a group that has read nothing: %v, %v", got, err)
	}
	_, err := ask(t, config, "billing", "biling")
	if err == nil || err.Error() != "group biling: the broker knows no such group" {
		t.Errorf("a group that is not there: %v", err)
	}
	_, err = ask(t, config, "broken")
	if err == nil || !strings.HasPrefix(err.Error(), "group broken: UNKNOWN_SERVER_ERROR") {
		t.Errorf("a group that the broker cannot tell of: %v", err)
	}
	_, err = ask(t, config, "cut off")
	if err == nil || !strings.HasPrefix(err.Error(), "group cut off: ") ||
		strings.Contains(err.Error(), "no such group") {
		t.Errorf("a broker that does not answer: %v", err)
	}
}

// TestNoNewerGroups: a broker that does not know the newer protocol has no groups of it.
func TestNoNewerGroups(t *testing.T) {
	t.Parallel()
	c := denying(t, kfake.MaxVersions(kversion.V3_4_0()))
	_, err := ask(t, Config{Bootstrap: c.ListenAddrs()}, "biling")
	if err == nil || err.Error() != "group biling: the broker knows no such group" {
		t.Errorf("a group that is not there: %v", err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
