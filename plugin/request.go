package plugin

import (
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

// noRank is behind every session header.
const noRank = 1 << 30

// roleOf is a role of a header that is read, and the next it has, if any.
type roleOf struct {
	role role
	next *roleOf
	// rank is the scope's position in SessionConfig.ScopeHeaders, or the session
	// header's in the order in which they count.
	rank int
}

// headerNames are the headers that a configuration reads.
type headerNames struct {
	names  abi.Names
	roles  []*roleOf // by the name's number
	scopes int       // the number of scope headers
}

// newHeaderNames lists the headers to read. Session headers count in this order: as
// configured, then spelled with "_" for "-" for clients that cannot send a dash.
func newHeaderNames(c *Config) *headerNames {
	n := &headerNames{scopes: len(c.Session.ScopeHeaders)}
	n.add(":path", isPath, 0)
	n.add(":method", isMethod, 0)
	n.add(c.Release.SecretHeader, isSecret, 0)
	if c.readsBodies() {
		n.add("content-type", isContentType, 0)
		n.add("content-encoding", isContentEncoding, 0)
	}
	for i, h := range c.Session.ScopeHeaders {
		n.add(h, isScope, i)
	}
	for i, h := range c.Session.Headers {
		n.add(h, isSession, i)
	}
	for i, h := range c.Session.Headers {
		n.add(strings.ReplaceAll(h, "-", "_"), isSession, len(c.Session.Headers)+i)
	}
	return n
}

// add gives a header a role, and a rank if it has none in that role.
func (n *headerNames) add(name string, r role, rank int) {
	number := n.names.Add(name)
	if number == len(n.roles) {
		n.roles = append(n.roles, nil)
	}
	end := &n.roles[number]
	for ; *end != nil; end = &(*end).next {
		if (*end).role == r {
			return
		}
	}
	*end = &roleOf{role: r, rank: rank}
}

// read fills the request from the gateway's headers.
func (r *request) read(names *headerNames) {
	r.path, r.method, r.id, r.secret = "", "", "", ""
	r.rank, r.repeated, r.json, r.encoded = noRank, false, false, false
	if names.scopes > 0 {
		r.scopes = append(r.scopes[:0], make([]string, names.scopes)...) // absent is a scope of its own
	}
	headers := abi.RequestHeaders()
	for _, h := range names.names.Find(headers) {
		value := headers.Value(h)
		for as := names.roles[h.Number]; as != nil; as = as.next {
			switch as.role {
			case isPath:
				r.path = value
			case isMethod:
				r.method = value
			default:
				r.take(as, value)
			}
		}
	}
	if r.encoded {
		r.json = false
	}
}

// take notes the value of a header in a role that not every request has one for.
func (r *request) take(as *roleOf, value string) {
	switch as.role {
	case isSecret:
		r.secret = value
	case isContentType:
		r.json = isJSON(value)
	case isContentEncoding:
		r.encoded = !strings.EqualFold(value, "identity")
	case isScope:
		if r.scopes[as.rank] == "" {
			r.scopes[as.rank] = value
		}
	case isSession:
		switch value = trim(value); {
		case value == "" || as.rank > r.rank:
		case as.rank == r.rank:
			r.repeated = r.repeated || value != r.id
		default:
			r.id, r.rank, r.repeated = value, as.rank, false
		}
	}
}

// begins reports whether the path begins with the prefix, which is not empty. Every
// turn asks, and hardly any path agrees with it even in one byte.
func begins(path, prefix string) bool {
	n := len(prefix)
	return n > 0 && len(path) >= n && path[n-1] == prefix[n-1] && path[:n] == prefix
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
	if len(r.scopes) == 0 && id != "" && len(id) <= f.config.Session.MaxIDBytes { // nearly all
		return policy.NewKey(f.secret, []byte(id)), 0, true
	}
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
