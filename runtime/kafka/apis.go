package kafka

import (
	"context"
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// keyAPIVersions is the request that clients begin with.
const keyAPIVersions int16 = 18

// handler answers a decoded request. An error ends the connection without an answer.
type handler func(c *conn, ctx context.Context, h header, req kmsg.Request) (*answer, error)

// api is a kind of request and the versions of it that are listed.
type api struct {
	key, min, max int16
	login         bool // answered before a login
	handle        handler
}

func (a api) has(version int16) bool { return a.min <= version && version <= a.max }

// answers are the requests that are answered. The newest versions are those that were read and
// tried: what a later kmsg knows is not listed by itself.
func answers() []api {
	return []api{
		{key: 1, min: 4, max: 18, handle: handle((*conn).fetch)},
		{key: 2, min: 1, max: 11, handle: handle((*conn).listOffsets)},
		{key: 3, min: 0, max: 13, handle: handle((*conn).metadata)},
		{key: 17, min: 0, max: 1, login: true, handle: handle((*conn).handshake)},
		{key: keyAPIVersions, min: 0, max: 5, login: true, handle: handle((*conn).apiVersions)},
		{key: 23, min: 0, max: 4, handle: handle((*conn).leaderEpochs)},
		{key: 32, min: 0, max: 4, handle: handle((*conn).describeConfigs)},
		{key: 36, min: 0, max: 2, login: true, handle: handle((*conn).authenticate)},
		{key: 60, min: 0, max: 2, handle: handle((*conn).describeCluster)},
	}
}

// handle makes a handler of one that knows the type of its request.
func handle[R kmsg.Request](f func(*conn, context.Context, header, R) (*answer, error)) handler {
	return func(c *conn, ctx context.Context, h header, req kmsg.Request) (*answer, error) {
		return f(c, ctx, h, req.(R))
	}
}

// refusals are the requests that are refused, by the code that a broker has for a caller who may
// not do it.
var refusals = map[*kerr.Error][]int16{
	kerr.TopicAuthorizationFailed: {
		0,  // Produce
		19, // CreateTopics
		20, // DeleteTopics
		21, // DeleteRecords
		33, // AlterConfigs
		37, // CreatePartitions
		44, // IncrementalAlterConfigs
	},
	kerr.GroupAuthorizationFailed: {
		8,  // OffsetCommit
		9,  // OffsetFetch
		10, // FindCoordinator
		11, // JoinGroup
		12, // Heartbeat
		13, // LeaveGroup
		14, // SyncGroup
		15, // DescribeGroups
		42, // DeleteGroups
		47, // OffsetDelete
	},
	kerr.TransactionalIDAuthorizationFailed: {
		24, // AddPartitionsToTxn
		25, // AddOffsetsToTxn
		26, // EndTxn
		28, // TxnOffsetCommit
	},
	kerr.ClusterAuthorizationFailed: {
		16, // ListGroups
		22, // InitProducerId
		29, // DescribeAcls
		30, // CreateAcls
		31, // DeleteAcls
		43, // ElectLeaders
		45, // AlterPartitionReassignments
		46, // ListPartitionReassignments
	},
}

// table is everything that is listed, by key.
func table() map[int16]api {
	out := map[int16]api{}
	for _, a := range answers() {
		out[a.key] = a
	}
	for code, keys := range refusals {
		for _, key := range keys {
			newest := kmsg.RequestForKey(key).MaxVersion()
			out[key] = api{key: key, max: newest, handle: refuse(code)}
		}
	}
	return out
}

// versions lists what is answered, in a response of the version.
func (s *Server) versions(version, code int16) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version, resp.ErrorCode = version, code
	for _, a := range s.apis {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = a.key, a.min, a.max
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	slices.SortFunc(resp.ApiKeys, func(a, b kmsg.ApiVersionsResponseApiKey) int {
		return int(a.ApiKey) - int(b.ApiKey)
	})
	return resp
}

// apiVersions says what is listed. A client that takes this for another broker, or for one of
// another cluster, is sent back to its beginnings (KIP-1242).
func (c *conn) apiVersions(_ context.Context, h header, req *kmsg.ApiVersionsRequest) (*answer,
	error) {
	code := int16(0)
	switch {
	case h.version < 5, req.ClusterID == nil && req.NodeID < 0:
	case req.ClusterID == nil || req.NodeID < 0:
		code = kerr.InvalidRequest.Code
	case *req.ClusterID != c.s.cfg.ClusterID || req.NodeID != NodeID:
		code = kerr.RebootstrapRequired.Code
	}
	return c.encode(h, c.s.versions(h.version, code), h.version >= 3), nil
}

// readOnly is what refusals say where there is room for a text.
const readOnly = "tierd serves an archive: it can only be read"

// refuse answers with the code, for each thing that is asked for.
func refuse(code *kerr.Error) handler {
	return func(c *conn, _ context.Context, h header, req kmsg.Request) (*answer, error) {
		if p, ok := req.(*kmsg.ProduceRequest); ok && p.Acks == 0 {
			// The client reads no response. A broker ends the connection, so that it notices.
			return &answer{last: true}, nil
		}
		resp := req.ResponseKind()
		text := readOnly
		mirror(reflect.ValueOf(resp).Elem(), reflect.ValueOf(req).Elem(), code.Code, &text)
		return c.encode(h, resp, resp.IsFlexible()), nil
	}
}

// alias is what a list of a response is called in its request, where the names differ.
var alias = map[string][]string{
	"Coordinators": {"CoordinatorKeys"},
	"Results":      {"Creations", "Filters"},
	"Topics":       {"TopicNames"},
}

// mirror fills a response with one element for each that its request has, the names copied, and
// every error set. Kafka's protocol is regular enough for it: lists of both have the same names,
// and so have the fields that identify their elements.
func mirror(resp, req reflect.Value, code int16, text *string) {
	if req.Kind() != reflect.Struct { // a list of bare names or numbers
		for i := range resp.NumField() {
			if f := resp.Field(i); f.Type() == req.Type() {
				f.Set(req)
				break
			}
			if f := resp.Field(i); f.Type() == reflect.PointerTo(req.Type()) {
				f.Set(req.Addr())
				break
			}
		}
	}
	for i := range resp.NumField() {
		name, f := resp.Type().Field(i).Name, resp.Field(i)
		switch {
		case name == "ErrorCode":
			f.SetInt(int64(code))
		case name == "ErrorMessage":
			f.Set(reflect.ValueOf(text))
		case req.Kind() != reflect.Struct || name == "Version" || name == "UnknownTags":
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Struct:
			mirrorList(f, req, name, code, text)
		default:
			if same := req.FieldByName(name); same.IsValid() && same.Type() == f.Type() {
				f.Set(same)
			}
		}
	}
}

// mirrorList makes the elements of the list that is called name.
func mirrorList(list, req reflect.Value, name string, code int16, text *string) {
	for _, from := range append([]string{name}, alias[name]...) {
		items := req.FieldByName(from)
		if !items.IsValid() || items.Kind() != reflect.Slice {
			continue
		}
		for i := range items.Len() {
			item := reflect.New(list.Type().Elem())
			if d, ok := item.Interface().(interface{ Default() }); ok {
				d.Default()
			}
			mirror(item.Elem(), items.Index(i), code, text)
			list.Set(reflect.Append(list, item.Elem()))
		}
		if list.Len() > 0 {
			return
		}
	}
}

// firstCode finds the first error code of a response that is not 0.
func firstCode(resp kmsg.Response) int16 { return findCode(reflect.ValueOf(resp).Elem()) }

func findCode(v reflect.Value) int16 {
	if f := v.FieldByName("ErrorCode"); f.IsValid() && f.Int() != 0 {
		return int16(f.Int())
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Slice || f.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		for j := range f.Len() {
			if code := findCode(f.Index(j)); code != 0 {
				return code
			}
		}
	}
	return 0
}
