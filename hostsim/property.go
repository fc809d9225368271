package hostsim

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// Path joins the segments of a property path as they are on the wire, with a zero byte. Functions that take a path also
// accept one without zero bytes, in which every dot separates: "upstream.address" is Path("upstream", "address").
func Path(segments ...string) string { return strings.Join(segments, "\x00") }

// wirePath is path as the module would ask for it.
func wirePath(path string) string {
	if strings.Contains(path, "\x00") {
		return path
	}
	return strings.ReplaceAll(path, ".", "\x00")
}

// PropertyInt encodes a number as Envoy answers integer properties, such as response.code: eight bytes, little endian.
func PropertyInt(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// SetProperty answers the plugin's proxy_get_property for path (see Path) with value, as bytes on the wire: text as it
// is, numbers by PropertyInt. Nil takes the answer back. Properties that hostsim derives itself, such as request.path and
// response.code, may be overridden.
func (s *Stream) SetProperty(path string, value []byte) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	path = wirePath(path)
	s.recordProperty(path, value)
	if value == nil {
		delete(s.properties, path)
		return
	}
	s.setProperty(path, value)
}

func (s *Stream) setProperty(path string, value []byte) {
	if s.properties == nil {
		s.properties = map[string][]byte{}
	}
	s.properties[path] = value
}

// FilterState returns what the plugin stored by proxy_set_property under name, which is "wasm." and the plugin's path.
func (s *Stream) FilterState(name string) ([]byte, bool) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	v, ok := s.filterState[name]
	return v, ok
}

// filterStatePrefix is what Envoy puts before the names that a plugin sets. Source: Envoy, CelStateKeyPrefix.
const filterStatePrefix = "wasm."

func callGetProperty(v *vm, a []uint64) Status {
	path, ok := v.read(a[0], a[1])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	c := v.target()
	if c == nil {
		return StatusNotFound
	}
	if whole(path) {
		return StatusSerializationFailure
	}
	if s := c.stream; s != nil {
		if value, ok := s.properties[string(path)]; ok {
			return give(v, value, a[2], a[3])
		}
	}
	if n := c.conn; n != nil {
		if value, ok := n.property(string(path)); ok {
			return give(v, value, a[2], a[3])
		}
	}
	if value, ok := v.host.properties[string(path)]; ok {
		return give(v, value, a[2], a[3])
	}
	if value, ok := v.host.pluginProperty(path); ok {
		return give(v, value, a[2], a[3])
	}
	if c.stream != nil {
		if value, ok := c.stream.derivedProperty(path); ok {
			return give(v, value, a[2], a[3])
		}
	}
	return StatusNotFound
}

// whole is true for a path to a group of properties rather than to one, which has no form on the wire. Source: seen on
// Envoy 1.36.4 and 1.40.0.
func whole(path []byte) bool {
	switch string(bytes.TrimSuffix(path, []byte{0})) {
	case "", "request", "response":
		return true
	}
	return false
}

func callSetProperty(v *vm, a []uint64) Status {
	path, ok1 := v.read(a[0], a[1])
	value, ok2 := v.read(a[2], a[3])
	if !ok1 || !ok2 {
		return StatusInvalidMemoryAccess
	}
	if n := v.conn(); n != nil {
		n.setFilterState(string(path), value)
		return StatusOK
	}
	s := v.stream()
	if s == nil {
		return StatusNotFound
	}
	if s.filterState == nil {
		s.filterState = map[string][]byte{}
	}
	s.filterState[filterStatePrefix+string(path)] = bytes.Clone(value)
	return StatusOK
}

func (h *Host) pluginProperty(path []byte) (string, bool) {
	switch string(path) {
	case "plugin_name":
		return h.config.Name, true
	case "plugin_root_id":
		return h.config.RootID, true
	case "plugin_vm_id":
		return h.config.VMID, true
	}
	return "", false
}

// derivedProperty answers from the stream's own messages. Names and encodings: Envoy's attributes, as far as a plugin can
// rely on them without a real connection.
func (s *Stream) derivedProperty(path []byte) (string, bool) {
	if rest, ok := bytes.CutPrefix(path, []byte("request\x00")); ok {
		return s.requestProperty(rest)
	}
	if rest, ok := bytes.CutPrefix(path, []byte("response\x00")); ok {
		return s.responseProperty(rest)
	}
	name := string(path)
	if rest, ok := strings.CutPrefix(name, "filter_state\x00"); ok {
		value, ok := s.filterState[rest]
		return string(value), ok
	}
	// What the plugin itself has set is readable under the plugin's name for it, a single segment.
	value, ok := s.filterState[filterStatePrefix+name]
	return string(value), ok && !strings.Contains(name, "\x00")
}

// requestHeaderOf says which header a request property shows.
var requestHeaderOf = map[string]string{"path": ":path", "url_path": ":path", "query": ":path", "host": ":authority",
	"scheme": ":scheme", "method": ":method", "id": "x-request-id", "referer": "referer", "useragent": "user-agent"}

// requestProperty answers from the request's headers while the plugin may use their map, and in the log: once they have
// gone on, request.path and the like are not found. Source: seen on Envoy 1.36.4 and 1.40.0.
func (s *Stream) requestProperty(name []byte) (string, bool) {
	d := &s.request
	open := d.hasHeaders && (d.headersOpen || s.logging)
	switch string(name) {
	case "size":
		return string(PropertyInt(int64(d.received))), true
	case "total_size":
		size := d.received
		if open {
			size += d.headers.byteSize()
		}
		return string(PropertyInt(int64(size))), true
	}
	if !open {
		return "", false
	}
	if header, ok := bytes.CutPrefix(name, []byte("headers\x00")); ok {
		return joinedValues(d.headers, header)
	}
	header, ok := requestHeaderOf[string(name)]
	if !ok {
		return "", false
	}
	value, ok := d.headers.Get(header)
	switch string(name) {
	case "url_path":
		value, _, _ = strings.Cut(value, "?")
	case "query":
		_, value, _ = strings.Cut(value, "?")
	}
	return value, ok
}

// joinedValues are all values of a header, with commas between.
func joinedValues(h Headers, name []byte) (string, bool) {
	values := h.Values(string(name))
	return strings.Join(values, ","), len(values) > 0
}

// responseProperty answers from the response. Its code is the one that came until what the plugin made of it has gone out.
// Source: seen on Envoy 1.36.4 and 1.40.0.
func (s *Stream) responseProperty(name []byte) (string, bool) {
	d := &s.response
	switch string(name) {
	case "flags":
		return string(PropertyInt(0)), true
	case "size":
		return string(PropertyInt(int64(d.passed))), true
	}
	if !d.hasHeaders {
		return "", false
	}
	if header, ok := bytes.CutPrefix(name, []byte("headers\x00")); ok && (d.headersOpen || s.logging) {
		return joinedValues(d.headers, header)
	}
	if header, ok := bytes.CutPrefix(name, []byte("trailers\x00")); ok && (d.trailersOpen || s.logging) {
		return joinedValues(d.trailers, header)
	}
	switch string(name) {
	case "code":
		status := d.status
		if d.headersOut {
			status = d.headers.Value(":status")
		}
		code, err := strconv.ParseInt(status, 10, 64)
		return string(PropertyInt(code)), err == nil
	case "code_details":
		if s.local != nil {
			return s.local.Details, s.local.Details != ""
		}
		return "via_upstream", true
	}
	return "", false
}
