package plugin

import (
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// request is what the plugin reads of a request's headers. Strings are valid until the
// callback ends.
type request struct {
	*headerNames
	// id is the session id, "" if the request has none: the value of the first session
	// header that has one. repeated tells that it had others, too.
	id       string
	repeated bool
	scopes   []string // values by position in SessionConfig.ScopeHeaders
}

// headerNames are the headers that a configuration reads, by their numbers in names.
type headerNames struct {
	names                                                  abi.Names
	path, method, secret, admin, contentType, contentCoded int
	// sessionHeaders are the session headers in the order in which they count: as configured,
	// then spelled with "_" for "-" for clients that cannot send a dash.
	sessionHeaders, scopeHeaders []int
}

func newHeaderNames(c *Config) *headerNames {
	n := &headerNames{}
	add := n.names.Add
	n.path, n.method, n.secret, n.admin = add(":path"), add(":method"), add(c.Release.SecretHeader), add(c.Admin.SecretHeader)
	n.contentType, n.contentCoded = add("content-type"), add("content-encoding")
	for _, h := range c.Session.Headers {
		n.sessionHeaders = append(n.sessionHeaders, add(h))
	}
	for _, h := range c.Session.Headers {
		n.sessionHeaders = append(n.sessionHeaders, add(strings.ReplaceAll(h, "-", "_")))
	}
	for _, h := range c.Session.ScopeHeaders {
		n.scopeHeaders = append(n.scopeHeaders, add(h))
	}
	return n
}

// read reads the gateway's headers.
func (r *request) read() {
	r.names.Find(abi.RequestHeaders)
	if header := r.sessionHeaders[0]; r.names.Times(header) == 1 && isTrim(r.names.Value(header)) { // nearly all
		r.id, r.repeated = r.names.Value(header), false
	} else {
		r.readSession()
	}
	if len(r.scopeHeaders) > 0 {
		r.readScopes()
	}
}

func (r *request) readSession() {
	r.id, r.repeated = "", false
	for _, header := range r.sessionHeaders {
		if r.id, r.repeated = r.first(header); r.id != "" {
			return
		}
	}
}

func (r *request) readScopes() {
	r.scopes = r.scopes[:0]
	for _, header := range r.scopeHeaders {
		value, _ := r.first(header)
		r.scopes = append(r.scopes, value) // absent is a scope of its own
	}
}

// first returns the first value of the header that is not blank, and whether there are
// other ones.
func (r *request) first(header int) (value string, others bool) {
	if r.names.Times(header) <= 1 {
		return trim(r.names.Value(header)), false
	}
	for _, v := range r.names.Values(header) {
		if v = trim(v); value == "" {
			value = v
		}
		others = others || v != "" && v != value
	}
	return value, others
}

// hasJSON reports whether the body is JSON text as it is, as the headers tell.
func (r *request) hasJSON() bool {
	coding := r.names.Value(r.contentCoded)
	return isJSON(r.names.Value(r.contentType)) && r.names.Times(r.contentCoded) <= 1 && (coding == "" || strings.EqualFold(coding, "identity"))
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
	if isTrim(value) {
		return value
	}
	return strings.Trim(value, " \t")
}

// isTrim reports whether a value has bytes, and no blanks at its ends.
func isTrim(value string) bool {
	n := len(value)
	return n > 0 && value[0] > ' ' && value[n-1] > ' '
}

// key returns the key of the session that id names in the request's scope, or the
// reason why it gets none: policy.Keyless or policy.Oversized. An id is bytes,
// whatever they are.
func (f *filter) key(r *request, id string) (key policy.Key, refused policy.Reason, ok bool) {
	if len(r.scopeHeaders) == 0 && id != "" && len(id) <= f.config.Session.MaxIDBytes { // nearly all
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
