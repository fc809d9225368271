package plugin

import (
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// sessionKeys finds the session of a request, in one way for every policy and
// for releases too.
type sessionKeys struct {
	SessionConfig
	secret policy.Secret
	// underscored are the spellings of Headers with "_" for "-", for clients
	// that cannot send a dash. They are asked after all of Headers.
	underscored []string
	buf         []byte
}

func newSessionKeys(c SessionConfig) *sessionKeys {
	k := &sessionKeys{SessionConfig: c}
	for _, h := range c.Headers {
		if strings.Contains(h, "-") {
			k.underscored = append(k.underscored, strings.ReplaceAll(h, "-", "_"))
		}
	}
	return k
}

// header returns the request's session id, or "" if it has none. Of several
// values of one header the gateway gives the first.
func (k *sessionKeys) header() string {
	for _, names := range [2][]string{k.Headers, k.underscored} {
		for _, name := range names {
			if v, err := proxywasm.GetHttpRequestHeader(name); err == nil {
				if v = strings.Trim(v, " \t"); v != "" {
					return v
				}
			}
		}
	}
	return ""
}

// of returns the key of the session that id names in this request's scope, or
// the reason why it gets none: policy.Keyless or policy.Oversized. An id is
// bytes, whatever they are.
func (k *sessionKeys) of(id string) (key policy.Key, refused policy.Reason, ok bool) {
	switch {
	case id == "":
		return key, policy.Keyless, false
	case len(id) > k.MaxIDBytes:
		return key, policy.Oversized, false
	}
	k.buf = k.buf[:0]
	for _, name := range k.ScopeHeaders {
		v, _ := proxywasm.GetHttpRequestHeader(name) // absent is a scope of its own
		k.buf = policy.AppendScope(k.buf, v)
	}
	k.buf = append(k.buf, id...)
	return policy.NewKey(k.secret, k.buf), 0, true
}
