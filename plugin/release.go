package plugin

import (
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// isRelease reports whether the path is the release path, and returns its query.
func (f *filter) isRelease(path string) (query string, ok bool) {
	c := &f.config.Release
	if !begins(path, c.Path) {
		return "", false
	}
	rest := path[len(c.Path):]
	query, asks := strings.CutPrefix(rest, "?")
	return query, asks || rest == ""
}

// maxReleases bounds the ids of one request: each reads a shard, and all run in
// one callback, in which the worker serves nobody else. As many ids of the size
// of a UUID fill the 60 KB that Envoy takes for a request's headers.
const maxReleases = 2048

// release ends sessions and returns the answer; such a request is never forwarded.
func (f *filter) release(r *request, query string) localReply {
	c := &f.config.Release
	if method := r.names.Value(r.method); method != "POST" && method != "DELETE" {
		a := refusal(405, "a session is released by POST or DELETE")
		a.headers = [][2]string{{"allow", "POST, DELETE"}}
		return a
	}
	if c.Secret != "" && !equal(r.names.Value(r.secret), c.Secret) {
		return refusal(401, "missing or wrong "+c.SecretHeader)
	}
	asked := sessionIDs(query)
	if len(asked) == 0 && r.id != "" {
		asked = []string{r.id}
	}
	var ended []string
	for _, id := range asked {
		if len(ended) > maxReleases {
			break // refused below
		}
		ended = f.appendMeant(ended, r, id)
	}
	if len(ended) == 0 {
		a := refusal(400, "no session id: give ?session_id=ID or the session header")
		a.unnamed = true
		return a
	}
	if len(ended) > maxReleases {
		return refusal(400, "too many session ids: at most "+strconv.Itoa(maxReleases)+" in one request")
	}
	reply := released(strings.Join(asked, ","))
	for _, id := range ended {
		if key, _, ok := f.key(r, id); ok {
			f.finish(key, &reply)
		}
	}
	return reply
}

// sessionIDs returns the ids of a query string: every session_id, split at
// commas. An open session whose id holds a comma is named by %2C.
func sessionIDs(query string) (ids []string) {
	for pair := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(pair, "session_id=")
		if !ok {
			continue
		}
		for id := range strings.SplitSeq(value, ",") {
			if id = strings.Trim(unescape(id), " \t"); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// appendMeant appends the ids that one given id means: the session that it names
// as a whole if that one is open or it has no comma, else those of a comma list.
// A header has no other way to write a list, and HTTP libraries escape the commas
// of a query's.
func (f *filter) appendMeant(ids []string, r *request, id string) []string {
	if !strings.Contains(id, ",") || f.isOpen(r, id) {
		return append(ids, id)
	}
	for part := range strings.SplitSeq(id, ",") {
		if part = strings.Trim(part, " \t"); part != "" {
			ids = append(ids, part)
		}
	}
	return ids
}

// unescape decodes percent-encoding and "+". What is no valid escape stands for
// itself: an id is bytes, and a client that did not encode means what it sent.
func unescape(s string) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b = append(b, ' ')
		case s[i] == '%' && i+2 < len(s) && json.Hex(s[i+1]) >= 0 && json.Hex(s[i+2]) >= 0:
			b = append(b, byte(json.Hex(s[i+1])<<4|json.Hex(s[i+2])))
			i += 2
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

// finish ends the session in the pool of the request's cluster. If it is not open
// there it is ended wherever it is: a release may come by any route. The answer waits
// for other gateways' agreement.
func (f *filter) finish(key policy.Key, reply *localReply) {
	now := milliseconds()
	own := f.poolOf()
	if own != nil && own.finish(key.Hash, reply, now) {
		return
	}
	for _, p := range f.pools {
		if p != own {
			p.finish(key.Hash, reply, now)
		}
	}
}

// finish ends the session and reports whether it was open here.
func (p *pool) finish(h policy.Hash, reply *localReply, now int64) bool {
	a := p.agreement
	if a == nil {
		return p.store.finish(h, now)
	}
	p.store.current(now)
	home := p.store.addressOf(p.store.homeOf(h))
	open := p.store.finish(h, now)
	a.give(instruction{kind: instructRelease, session: h, address: home}, reply)
	return open
}

// isOpen reports whether the session has a pin in any pool.
func (f *filter) isOpen(r *request, id string) (open bool) {
	if key, _, ok := f.key(r, id); ok {
		now := milliseconds()
		for _, p := range f.pools {
			open = open || p.store.isOpen(key.Hash, now)
		}
	}
	return open
}

// equal compares secrets in a time that depends on their lengths alone.
func equal(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	var differ byte
	for i := range len(a) {
		differ |= a[i] ^ b[i]
	}
	return differ == 0
}
