package hostsim

import "testing"

// Names that a gateway keeps once are joined, whoever adds the value; others stay apart. Seen on Envoy 1.36.4 and 1.40.0.
func TestJoinedHeaders(t *testing.T) {
	for _, tt := range []struct {
		kind MapKind
		in   Headers
		want Headers
	}{
		{MapRequestHeaders, Headers{{"User-Agent", "a"}, {"x", "1"}, {"user-agent", "b"}, {"X", "2"}}, Headers{{"user-agent", "a,b"}, {"x", "1"}, {"x", "2"}}},
		{MapRequestHeaders, Headers{{"cookie", "a"}, {"cookie", "b"}}, Headers{{"cookie", "a"}, {"cookie", "b"}}},
		{MapRequestHeaders, Headers{{"x", "1"}, {"Host", "h"}, {":path", "/"}}, Headers{{":authority", "h"}, {":path", "/"}, {"x", "1"}}},
		{MapResponseHeaders, Headers{{"host", "h"}, {"vary", "a"}, {"vary", "b"}, {"set-cookie", "a"}, {"set-cookie", "b"}}, Headers{{"host", "h"}, {"vary", "a,b"}, {"set-cookie", "a"}, {"set-cookie", "b"}}},
		{MapResponseTrailers, Headers{{"grpc-status", "0"}, {"grpc-status", "1"}, {"vary", "a"}, {"vary", "b"}}, Headers{{"grpc-status", "0,1"}, {"vary", "a"}, {"vary", "b"}}},
		{MapRequestTrailers, Headers{{"grpc-status", "0"}, {"grpc-status", "1"}}, Headers{{"grpc-status", "0"}, {"grpc-status", "1"}}},
	} {
		if got := tt.kind.normal(tt.in); string(encodePairs(got)) != string(encodePairs(tt.want)) {
			t.Errorf("map %d: %v is held as %v, want %v", tt.kind, tt.in, got, tt.want)
		}
	}
}
