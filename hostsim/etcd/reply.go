package etcd

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
)

// Replies are as etcd's gateway writes them: 64-bit numbers as strings, bytes as base64, and nothing that is zero.

// The ids of a server that was started without options, and which is a cluster of its own.
const (
	clusterID = "14841639068965178418"
	memberID  = "10276657743932975437"
)

// beginReply begins a reply with its header, as of the store's revision.
func (s *Server) beginReply() []byte {
	out := append(make([]byte, 0, 256), `{"header":{"cluster_id":"`+clusterID+`","member_id":"`+memberID+`",`...)
	out = appendRevision(out, s.store.revision)
	out = append(out, `,"raft_term":"`...)
	return append(strconv.AppendInt(out, s.term, 10), `"}`...)
}

func appendRevision(out []byte, revision int64) []byte {
	return append(strconv.AppendInt(append(out, `"revision":"`...), revision, 10), '"')
}

// appendInt appends a field behind others.
func appendInt(out []byte, name string, value int64) []byte {
	if value == 0 {
		return out
	}
	out = append(append(append(out, `,"`...), name...), `":"`...)
	return append(strconv.AppendInt(out, value, 10), '"')
}

func appendBytes(out []byte, s string) []byte {
	out = append(out, '"')
	for len(s) > 0 {
		var few [48]byte // a multiple of three, so that only the last part is padded
		n := copy(few[:], s)
		out, s = base64.StdEncoding.AppendEncode(out, few[:n]), s[n:]
	}
	return append(out, '"')
}

func appendKeyValue(out []byte, kv *keyValue, keyOnly bool) []byte {
	out = appendBytes(append(out, `{"key":`...), kv.key)
	out = appendInt(out, "create_revision", kv.create)
	out = appendInt(out, "mod_revision", kv.mod)
	out = appendInt(out, "version", kv.version)
	if kv.value != "" && !keyOnly {
		out = appendBytes(append(out, `,"value":`...), kv.value)
	}
	return append(appendInt(out, "lease", kv.lease), '}')
}

// appendKeys appends a field with a list of keys behind others.
func appendKeys(out []byte, name string, keys []*keyValue, keysOnly bool) []byte {
	if len(keys) == 0 {
		return out
	}
	out = append(append(append(out, `,"`...), name...), `":[`...)
	for i, kv := range keys {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendKeyValue(out, kv, keysOnly)
	}
	return append(out, ']')
}

func appendRange(out []byte, r rangeResult, keysOnly bool) []byte {
	out = appendKeys(out, "kvs", r.keys, keysOnly)
	if r.more {
		out = append(out, `,"more":true`...)
	}
	return appendInt(out, "count", int64(r.count))
}

func appendPut(out []byte, r *putRequest, old *keyValue) []byte {
	if r.prevKV && old != nil {
		out = appendKeyValue(append(out, `,"prev_kv":`...), old, false)
	}
	return out
}

// appendPrevious appends what a delete is about to remove.
func appendPrevious(out []byte, s *store, r *deleteRequest) []byte {
	from, to := span(s.keys, r.key, r.end)
	return appendKeys(out, "prev_kvs", s.keys[from:to], false)
}

// refusal is an error as etcd replies it.
type refusal struct {
	// code is gRPC's.
	code    int
	message string
}

// gRPC's codes that etcd refuses with. Source: google.golang.org/grpc/codes.
const (
	codeUnknown            = 2
	codeInvalidArgument    = 3
	codeNotFound           = 5
	codePermissionDenied   = 7
	codeFailedPrecondition = 9
	codeOutOfRange         = 11
	codeUnauthenticated    = 16
)

// Source: etcd 3.4, etcdserver/api/v3rpc/rpctypes/error.go.
var (
	emptyKey        = &refusal{codeInvalidArgument, "etcdserver: key is not provided"}
	keyNotFound     = &refusal{codeInvalidArgument, "etcdserver: key not found"}
	valueProvided   = &refusal{codeInvalidArgument, "etcdserver: value is provided"}
	leaseProvided   = &refusal{codeInvalidArgument, "etcdserver: lease is provided"}
	tooManyOps      = &refusal{codeInvalidArgument, "etcdserver: too many operations in txn request"}
	duplicateKey    = &refusal{codeInvalidArgument, "etcdserver: duplicate key given in txn request"}
	futureRevision  = &refusal{codeOutOfRange, "etcdserver: mvcc: required revision is a future revision"}
	compacted       = &refusal{codeOutOfRange, "etcdserver: mvcc: required revision has been compacted"}
	leaseNotFound   = &refusal{codeNotFound, "etcdserver: requested lease not found"}
	leaseExists     = &refusal{codeFailedPrecondition, "etcdserver: lease already exists"}
	leaseTTLTooLong = &refusal{codeOutOfRange, "etcdserver: too large lease TTL"}
	authNotEnabled  = &refusal{codeFailedPrecondition, "etcdserver: authentication is not enabled"}
	authFailed      = &refusal{codeInvalidArgument, "etcdserver: authentication failed, invalid user ID or password"}
	userEmpty       = &refusal{codeInvalidArgument, "etcdserver: user name is empty"}
	notPermitted    = &refusal{codePermissionDenied, "etcdserver: permission denied"}
	invalidToken    = &refusal{codeUnauthenticated, "etcdserver: invalid auth token"}
	// invalidSort is a later etcd's, as 3.4.23 dies of such a request.
	invalidSort = &refusal{codeInvalidArgument, "etcdserver: invalid sort option"}
	// crashed breaks the connection: 3.4's gateway panics.
	crashed = &refusal{}
	// malformed stands for every message of the JSON decoder.
	malformed = &refusal{codeInvalidArgument, "malformed request"}
)

// status is what etcd 3.4's gateway makes of a code. Later ones answer FailedPrecondition with 400.
func (r *refusal) status() int {
	switch r.code {
	case codeNotFound:
		return http.StatusNotFound
	case codePermissionDenied:
		return http.StatusForbidden
	case codeFailedPrecondition:
		return http.StatusPreconditionFailed
	case codeUnauthenticated:
		return http.StatusUnauthorized
	case codeUnknown:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

func (r *refusal) body() []byte {
	text, _ := json.Marshal(r.message)
	out := append(append([]byte(`{"error":`), text...), `,"message":`...)
	return append(strconv.AppendInt(append(append(out, text...), `,"code":`...), int64(r.code), 10), '}')
}
