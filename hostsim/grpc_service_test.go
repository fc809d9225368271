package hostsim

import "testing"

// grpcServiceMessage is a GrpcService with envoy_grpc.cluster_name.
func grpcServiceMessage(cluster string) []byte {
	inner := append([]byte{1<<3 | 2, byte(len(cluster))}, cluster...)
	return append([]byte{1<<3 | 2, byte(len(inner))}, inner...)
}

func TestParseGRPCService(t *testing.T) {
	for _, tt := range []struct {
		in, target string
		ok         bool
	}{
		{string(grpcServiceMessage("vllm")), "vllm", true},
		{"", "", true},
		{"\x12\x04\x0a\x02up", "up", true},                 // google_grpc.target_uri
		{"\x0a\x04\x0a\x02up\x1a\x02\x08\x05", "up", true}, // and a timeout
		{"\x0a\x04\x0a\x02u\xff", "u\xff", false},          // not text
		{"\x0a\x05\x0a\x02up", "", false},                  // longer than it is
		{"\x0a\x04\x0a\x03up", "", false},                  // the inner one
		{"cluster", "", false}, {"grpc", "", false},        // groups
		{"vllm", "", false}, {"backend", "", false}, // lengths beyond the end
		{"authority", "", true}, {"e1234", "", true}, {"hx", "", true}, // messages by accident
		{"a", "", false}, {"e123", "", false}, {"h", "", false}, {"h\xff", "", false},
		{"\x00", "", false}, {"\x01", "", false}, {"\x0b", "", false}, {"\x0a\xff", "", false},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "", false},
	} {
		if target, ok := parseGRPCService([]byte(tt.in)); target != tt.target && ok || ok != tt.ok {
			t.Errorf("%q: %q %v, want %q %v", tt.in, target, ok, tt.target, tt.ok)
		}
	}
}

func FuzzParseGRPCService(f *testing.F) {
	f.Add(grpcServiceMessage("vllm"))
	f.Add([]byte("authority"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if target, ok := parseGRPCService(b); ok && len(target) > len(b) {
			t.Errorf("target %q out of %q", target, b)
		}
	})
}
