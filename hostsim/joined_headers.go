package hostsim

import "strings"

// Headers that Envoy keeps once: a further value joins the first behind a comma instead of making a second header, whoever
// adds it. Others may occur more than once. Source: seen on Envoy 1.36.4 and 1.40.0, which answer alike; in its code
// these are the inline headers, of which some exist only because a filter is compiled in.
var (
	joinedInRequests = nameSet(
		"accept", "accept-encoding", "access-control-request-headers", "access-control-request-method", "authorization",
		"cache-control", "cdn-loop", "connection", "content-encoding", "content-length", "content-type", "expect",
		"grpc-accept-encoding", "grpc-timeout", ":authority", "if-match", "if-modified-since", "if-none-match",
		"if-range", "if-unmodified-since", "keep-alive", "origin", "pragma", "proxy-connection", "proxy-status",
		"referer", "te", "transfer-encoding", "upgrade", "user-agent", "via", "x-client-trace-id",
		"x-envoy-attempt-count", "x-envoy-decorator-operation", "x-envoy-downstream-service-cluster",
		"x-envoy-downstream-service-node", "x-envoy-expected-rq-timeout-ms", "x-envoy-external-address",
		"x-envoy-force-trace", "x-envoy-hedge-on-per-try-timeout", "x-envoy-internal", "x-envoy-ip-tags",
		"x-envoy-is-timeout-retry", "x-envoy-max-retries", "x-envoy-original-host", "x-envoy-original-path",
		"x-envoy-original-url", "x-envoy-retriable-header-names", "x-envoy-retriable-status-codes",
		"x-envoy-retry-grpc-on", "x-envoy-retry-on", "x-envoy-upstream-alt-stat-name",
		"x-envoy-upstream-rq-per-try-timeout-ms", "x-envoy-upstream-rq-timeout-alt-response",
		"x-envoy-upstream-rq-timeout-ms", "x-envoy-upstream-stream-duration-ms", "x-forwarded-client-cert",
		"x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto", "x-request-id", ":scheme",
		":method", ":protocol", ":path")
	joinedInResponses = nameSet(
		"access-control-allow-credentials", "access-control-allow-headers", "access-control-allow-methods",
		"access-control-allow-origin", "access-control-expose-headers", "access-control-max-age",
		"access-control-allow-private-network", "age", "cache-control", "connection", "content-encoding",
		"content-length", "content-type", "date", "etag", "expires", "grpc-status", "grpc-message", "keep-alive",
		"last-modified", "location", "proxy-connection", "proxy-status", "server", "transfer-encoding", "upgrade", "vary",
		"via", "x-envoy-attempt-count", "x-envoy-decorator-operation", "x-envoy-degraded",
		"x-envoy-immediate-health-check-fail", "x-envoy-ratelimited", "x-envoy-upstream-canary",
		"x-envoy-upstream-healthchecked-cluster", "x-envoy-upstream-service-time", "x-request-id", ":status")
	joinedInResponseTrailers = nameSet("grpc-status", "grpc-message")
)

func nameSet(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// joined are the names of which a map of this kind keeps one.
func (kind MapKind) joined() map[string]bool {
	switch kind {
	case MapRequestHeaders:
		return joinedInRequests
	case MapResponseHeaders:
		return joinedInResponses
	case MapResponseTrailers:
		return joinedInResponseTrailers
	}
	return nil
}

// headerName is name in lower case as the map knows it: in a request, host is another name for :authority. Source: Envoy,
// RequestHeaderMapImpl.
func (kind MapKind) headerName(name string) string {
	if name == "host" && kind == MapRequestHeaders {
		return ":authority"
	}
	return name
}

// authority is what asking a request for host asks for.
var authority = []byte(":authority")

// lookup is headerName for a name from the module, in any case.
func (kind MapKind) lookup(name []byte) []byte {
	if kind == MapRequestHeaders && sameName("host", name) {
		return authority
	}
	return name
}

// add adds a value as a gateway's map of this kind does; name is in lower case.
func (kind MapKind) add(h *Headers, name, value string) {
	name = kind.headerName(name)
	if kind.joined()[name] {
		if i := h.index([]byte(name)); i >= 0 {
			(*h)[i][1] += "," + value
			return
		}
	}
	h.Add(name, value)
}

// normal is h as a gateway's map of this kind holds it. It shares nothing with h.
func (kind MapKind) normal(h Headers) Headers {
	out := make(Headers, 0, len(h))
	for _, kv := range h {
		kind.add(&out, strings.ToLower(kv[0]), kv[1])
	}
	return out
}
