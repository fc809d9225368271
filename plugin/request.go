package plugin

import (
	"math"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// request is what the plugin reads of a request's headers, in one pass over all
// of them. Strings are valid until the callback ends.
type request struct {
	path, method string
	// id is the session id, "" if the request has none. Of several values of the
	// header the first counts; repeated tells that there were others.
	id       string
	rank     int // of the header that named it
	repeated bool
	secret   string
	// json says that the body is JSON text, as the headers tell, and encoded that it is
	// compressed.
	json, encoded bool
	scopes        []string // values by position in SessionConfig.ScopeHeaders
}

// role is what a header is read for. One name may have several.
type role uint8

const (
	isPath role = iota
	isMethod
	isSecret
	isContentType
	isContentEncoding
	isScope
	isSession
)

// namedRole is a header and one of its roles.
type namedRole struct {
	name string
	role role
	// rank is the scope's position in SessionConfig.ScopeHeaders, or the session
	// header's in the order in which they count.
	rank int
}

// headerNames are the headers that a configuration reads.
type headerNames struct {
	// roles are by the name's length, which most headers do not share with any: those
	// from 63 on are together, as in lengths.
	roles   [64][]namedRole
	lengths abi.Lengths
	scopes  int // the number of scope headers
}

// newHeaderNames lists the headers to read. Session headers count in this order: as
// configured, then spelled with "_" for "-" for clients that cannot send a dash.
func newHeaderNames(c *Config) headerNames {
	names := headerNames{scopes: len(c.Session.ScopeHeaders)}
	names.add(":path", isPath, 0)
	names.add(":method", isMethod, 0)
	names.add(c.Release.SecretHeader, isSecret, 0)
	if c.readsBodies() {
		names.add("content-type", isContentType, 0)
		names.add("content-encoding", isContentEncoding, 0)
	}
	for i, h := range c.Session.ScopeHeaders {
		names.add(h, isScope, i)
	}
	rank := 0
	for _, h := range c.Session.Headers {
		names.add(h, isSession, rank)
		rank++
	}
	for _, h := range c.Session.Headers {
		if strings.Contains(h, "-") {
			names.add(strings.ReplaceAll(h, "-", "_"), isSession, rank)
			rank++
		}
	}
	return names
}

func (n *headerNames) add(name string, r role, rank int) {
	list := &n.roles[min(len(name), len(n.roles)-1)]
	if r == isSession && slices.ContainsFunc(*list, func(has namedRole) bool { return has.name == name && has.role == r }) {
		return // the first of two that are spelled alike counts
	}
	*list = append(*list, namedRole{name, r, rank})
	n.lengths = n.lengths.With(name)
}

// read fills the request from the gateway's headers.
func (r *request) read(names *headerNames) {
	*r = request{scopes: r.scopes[:0], rank: math.MaxInt}
	for range names.scopes {
		r.scopes = append(r.scopes, "") // absent is a scope of its own
	}
	headers := abi.RequestHeaders()
	for name, value, ok := headers.Next(names.lengths); ok; name, value, ok = headers.Next(names.lengths) {
		roles := names.roles[min(len(name), len(names.roles)-1)]
		for i := range roles {
			if known := &roles[i]; known.name == name {
				r.take(known, value)
			}
		}
	}
	r.json = r.json && !r.encoded
}

// take notes the value of a header that is read.
func (r *request) take(known *namedRole, value string) {
	switch known.role {
	case isPath:
		r.path = value
	case isMethod:
		r.method = value
	case isSecret:
		r.secret = value
	case isContentType:
		r.json = isJSON(value)
	case isContentEncoding:
		r.encoded = !strings.EqualFold(value, "identity")
	case isScope:
		if r.scopes[known.rank] == "" {
			r.scopes[known.rank] = value
		}
	case isSession:
		switch value = trim(value); {
		case value == "" || known.rank > r.rank:
		case known.rank == r.rank:
			r.repeated = r.repeated || value != r.id
		default:
			r.id, r.rank, r.repeated = value, known.rank, false
		}
	}
}

// isJSON reports whether a content type is that of JSON (RFC 6839, section 3.1).
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = trim(media)
	const json = "application/json"
	return strings.EqualFold(media, json) ||
		len(media) > 5 && strings.EqualFold(media[len(media)-5:], "+json")
}

// trim takes blanks off both ends: they are no part of a header's value (RFC 9110,
// section 5.5), and not every gateway takes them off.
func trim(value string) string {
	if n := len(value); n == 0 || value[0] > ' ' && value[n-1] > ' ' {
		return value
	}
	return strings.Trim(value, " \t")
}

// key returns the key of the session that id names in the request's scope, or the
// reason why it gets none: policy.Keyless or policy.Oversized. An id is bytes,
// whatever they are.
func (f *filter) key(r *request, id string) (key policy.Key, refused policy.Reason, ok bool) {
	f.keyed = r.appendScope(f.keyed[:0])
	return f.keyBehind(id)
}

// appendScope appends what goes before every id of the request's scope.
func (r *request) appendScope(dst []byte) []byte {
	for _, scope := range r.scopes {
		dst = policy.AppendScope(dst, scope)
	}
	return dst
}

// keyBehind is key for the scope that f.keyed holds.
func (f *filter) keyBehind(id string) (key policy.Key, refused policy.Reason, ok bool) {
	switch {
	case id == "":
		return key, policy.Keyless, false
	case len(id) > f.config.Session.MaxIDBytes:
		return key, policy.Oversized, false
	}
	f.keyed = append(f.keyed, id...)
	return policy.NewKey(f.secret, f.keyed), 0, true
}
