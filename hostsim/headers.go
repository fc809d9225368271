package hostsim

import (
	"slices"
	"strings"
)

// Headers is an ordered list of name and value pairs. Names are lower case; values are bytes, not text. A name may occur
// more than once. It is not safe for concurrent use.
type Headers [][2]string

// lowered returns a copy of h with every name in lower case, as the HTTP codec of a gateway delivers them.
func (h Headers) lowered() Headers {
	out := make(Headers, len(h))
	for i, kv := range h {
		out[i] = [2]string{strings.ToLower(kv[0]), kv[1]}
	}
	return out
}

// Get returns the first value of name, compared without case, and whether there is one.
func (h Headers) Get(name string) (string, bool) {
	for i := range h {
		if strings.EqualFold(h[i][0], name) {
			return h[i][1], true
		}
	}
	return "", false
}

// Value returns the first value of name, or "".
func (h Headers) Value(name string) string {
	v, _ := h.Get(name)
	return v
}

// Values returns all values of name, in order.
func (h Headers) Values(name string) []string {
	var out []string
	for i := range h {
		if strings.EqualFold(h[i][0], name) {
			out = append(out, h[i][1])
		}
	}
	return out
}

// Clone returns a copy that shares nothing with h.
func (h Headers) Clone() Headers { return slices.Clone(h) }

// Add adds a value, keeping those that are there: a pseudo header behind the other pseudo headers, any other at the end.
func (h *Headers) Add(name, value string) {
	pair := [2]string{strings.ToLower(name), value}
	if !strings.HasPrefix(name, ":") {
		*h = append(*h, pair)
		return
	}
	i := 0
	for i < len(*h) && strings.HasPrefix((*h)[i][0], ":") {
		i++
	}
	*h = slices.Insert(*h, i, pair)
}

// Set gives name exactly one value, in the place where Add puts it: Envoy removes the header and adds it anew.
func (h *Headers) Set(name, value string) {
	h.Del(name)
	h.Add(name, value)
}

// put is Set that leaves a header that is there in its place.
func (h *Headers) put(name, value string) {
	for i := range *h {
		if (*h)[i][0] == name {
			(*h)[i][1] = value
			return
		}
	}
	h.Add(name, value)
}

// Del removes every value of name.
func (h *Headers) Del(name string) {
	*h = slices.DeleteFunc(*h, func(kv [2]string) bool { return strings.EqualFold(kv[0], name) })
}

// byteSize is what Envoy's HeaderMap::byteSize answers: names and values without separators.
func (h Headers) byteSize() int {
	n := 0
	for i := range h {
		n += len(h[i][0]) + len(h[i][1])
	}
	return n
}
