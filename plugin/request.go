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
	repeated bool
	secret   string
	// json says that the body is JSON text, as the headers tell.
	json   bool
	scopes []string // values by position in SessionConfig.ScopeHeaders
}

// headerNames are the headers that a configuration reads.
type headerNames struct {
	// session are the names of session headers, in the order in which they count:
	// as configured, then spelled with "_" for "-" for clients that cannot send a
	// dash.
	session []string
	scopes  []string
	secret  string
	lengths abi.Lengths // of all these names
}

func newHeaderNames(c *Config) headerNames {
	names := headerNames{session: c.Session.Headers, scopes: c.Session.ScopeHeaders, secret: c.Release.SecretHeader}
	for _, h := range c.Session.Headers {
		if strings.Contains(h, "-") {
			names.session = append(names.session[:len(names.session):len(names.session)], strings.ReplaceAll(h, "-", "_"))
		}
	}
	asked := []string{names.secret, ":path", ":method"}
	if c.readsBodies() {
		asked = append(asked, "content-type", "content-encoding")
	}
	for _, list := range [][]string{names.session, names.scopes, asked} {
		for _, name := range list {
			names.lengths = names.lengths.With(name)
		}
	}
	return names
}

// read fills the request from the gateway's headers.
func (r *request) read(names *headerNames) {
	*r = request{scopes: r.scopes[:0]}
	for range names.scopes {
		r.scopes = append(r.scopes, "") // absent is a scope of its own
	}
	rank := len(names.session)
	encoded := false
	headers := abi.RequestHeaders()
	for name, value, ok := headers.Next(names.lengths); ok; name, value, ok = headers.Next(names.lengths) {
		switch name {
		case ":path":
			r.path = value
		case ":method":
			r.method = value
		case "content-type":
			r.json = isJSON(value)
		case "content-encoding":
			encoded = !strings.EqualFold(value, "identity")
		case names.secret:
			r.secret = value
		}
		if i := index(names.scopes, name); i >= 0 && r.scopes[i] == "" {
			r.scopes[i] = value
		}
		i := index(names.session, name)
		if i < 0 || i > rank {
			continue
		}
		switch value = trim(value); {
		case value == "":
		case i == rank:
			r.repeated = r.repeated || value != r.id
		default:
			r.id, rank, r.repeated = value, i, false
		}
	}
	r.json = r.json && !encoded
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

func index(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
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
