package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tierd/tierd/runtime/tier"
)

// groupRetries is how often one question to a broker is repeated: whoever asks asks again soon, and
// wants to know why there was no answer, not that time was over.
const groupRetries = 2

// Offsets are committed offsets by log: the next one that a group will read. A log that is not
// there has none: the group has read nothing of it.
type Offsets map[tier.LogID]tier.Offset

// GroupOffsets asks the broker which offsets the groups have committed. It answers for all groups
// or for none, since a group that is left out would look as if nobody had asked for it: a group
// that the broker does not know is an error, and so is one that may not be asked about.
func GroupOffsets(ctx context.Context, c Config, groups []string) (map[string]Offsets, error) {
	options, err := Options(c)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options, kgo.RequestRetries(groupRetries))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	out := make(map[string]Offsets, len(groups))
	var empty []string
	answers := admin.FetchManyOffsets(ctx, groups...)
	for _, group := range groups {
		answer, ok := answers[group]
		if !ok {
			return nil, fmt.Errorf("group %s: the broker did not answer for it", group)
		}
		if answer.Err != nil {
			return nil, refusal(group, cause(answer.Err))
		}
		if out[group], err = offsets(answer.Fetched); err != nil {
			return nil, fmt.Errorf("group %s: %w", group, err)
		}
		if len(out[group]) == 0 {
			empty = append(empty, group)
		}
	}
	return out, exist(ctx, admin, empty)
}

// cause leaves out what the client says of its own tries.
func cause(err error) error {
	if shards := (*kadm.ShardErrors)(nil); errors.As(err, &shards) && len(shards.Errs) > 0 {
		return shards.Errs[0].Err
	}
	return err
}

// tooOld reports whether a broker does not know the request. The client has no name for its error.
func tooOld(err error) bool {
	return errors.Is(err, kerr.UnsupportedVersion) ||
		strings.HasPrefix(err.Error(), "broker is too old")
}

// refusal says what the broker has against a group.
func refusal(group string, err error) error {
	if errors.Is(err, kerr.GroupIDNotFound) {
		return fmt.Errorf("group %s: the broker knows no such group", group)
	}
	return fmt.Errorf("group %s: %w", group, err)
}

// offsets takes over what a group has committed. Partitions without a committed offset are left
// out, as are names that are no logs.
func offsets(fetched kadm.OffsetResponses) (Offsets, error) {
	out := Offsets{}
	for _, o := range fetched.Sorted() {
		if o.Err != nil {
			return nil, fmt.Errorf("%s/%d: %w", o.Topic, o.Partition, o.Err)
		}
		if o.At < 0 {
			continue
		}
		id := tier.LogID{Table: o.Topic, Name: strconv.FormatInt(int64(o.Partition), 10)}
		out[id] = tier.Offset(o.At)
	}
	return out, nil
}

// exist makes sure that the broker knows the groups, none of which has committed anything. A
// broker answers for a name that was never heard of as for a group that has read nothing, and a
// typing error would keep for ever without a word.
func exist(ctx context.Context, admin *kadm.Client, groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	described, err := admin.DescribeGroups(ctx, groups...)
	if err != nil {
		return cause(err)
	}
	slices.Sort(groups)
	var unknown []string
	for _, group := range groups {
		d, ok := described[group]
		switch {
		case !ok || d.State == "Dead" || errors.Is(d.Err, kerr.GroupIDNotFound):
			unknown = append(unknown, group)
		case d.Err != nil:
			return refusal(group, d.Err)
		}
	}
	return existNewer(ctx, admin, unknown)
}

// existNewer makes sure that the broker knows the groups among those of the newer protocol
// (KIP-848), which it denies to know where it is asked as for the others. A broker that does not
// understand the question has no such groups.
func existNewer(ctx context.Context, admin *kadm.Client, groups []string) error {
	if len(groups) == 0 {
		return nil
	}
	described, err := admin.DescribeConsumerGroups(ctx, groups...)
	if auth := (*kadm.AuthError)(nil); errors.As(err, &auth) {
		return auth
	}
	for _, group := range groups {
		switch d, ok := described[group]; {
		case !ok && err != nil && !tooOld(cause(err)):
			return fmt.Errorf("group %s: %w", group, cause(err))
		case ok && d.Err != nil && !errors.Is(d.Err, kerr.UnsupportedVersion):
			return refusal(group, d.Err)
		case !ok || d.Err != nil || d.State == "Dead":
			return refusal(group, kerr.GroupIDNotFound)
		}
	}
	return nil
}
