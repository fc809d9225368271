package plugin

import (
	"net/netip"
	"testing"
)

// net/netip is the judge, but of zones and of port 0, which no replica has.
func FuzzCanonicalAddress(f *testing.F) {
	for _, seed := range []string{
		"10.0.0.1:8000", "10.0.0.1:08000", "010.0.0.1:1", "1.2.3:4", "1.2.3.4.5:6", "1.2.3.256:1", "1.2.3.4:65536", "1.2.3.4:0", "1.2.3.4:", "1.2.3.4",
		":80", "", "[]:1", "[:1", "[1.2.3.4]:1", "::1:80", "[::1]:80", "[::]:1", "[1::]:1", "[1:2:3:4:5:6:7:8]:1", "[1:2:3:4:5:6:7::]:1", "[::2:3:4:5:6:7:8]:1",
		"[1:2:3:4:5:6:7:8:9]:1", "[1:2:3:4::5:6:7:8]:1", "[1::2::3]:1", "[12345::]:1", "[2001:DB8::0:1]:443", "[1:0:0:2:0:0:0:3]:1", "[1:0:0:2:3:0:0:4]:1",
		"[0:1:0:1:0:1:0:1]:1", "[::ffff:1.2.3.4]:1", "[::1.2.3.4]:1", "[1:2:3:4:5:6:1.2.3.4]:1", "[1:2:3:4:5:6:7:1.2.3.4]:1", "[1.2.3.4::]:1", "[::ffff:0:0]:1",
		"[::fffe:1:2]:1", "[fe80::1%eth0]:1", "[:1::]:1", "[1:]:1", "[::1:]:1", "[:::]:1", "[::g]:1", "1.2.3.4:+5", "1.2.3.4:1_0", " 1.2.3.4:5", "a.b:5", "[::1]]:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want := ""
		if a, err := netip.ParseAddrPort(s); err == nil && a.Port() != 0 && a.Addr().Zone() == "" {
			want = a.String()
		}
		if got, ok := canonicalAddress(s); got != want || ok != (want != "") {
			t.Fatalf("%q is %q %v, netip has %q", s, got, ok, want)
		}
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			want = netip.AddrPortFrom(a, 7).String()
		} else {
			want = ""
		}
		got := ""
		if a, ok := parseIP(s); ok {
			got = a.withPort(7)
		}
		if got != want {
			t.Fatalf("%q is %q, netip has %q", s, got, want)
		}
	})
}

// Every run of zero groups, against net/netip.
func TestIPv6Runs(t *testing.T) {
	for zeros := range 256 {
		var b [16]byte
		for i := range 8 {
			if zeros>>i&1 == 0 {
				b[2*i] = byte(i)
				b[2*i+1] = 0xf0
			}
		}
		a := ip{b: b}
		if got, want := a.withPort(1), netip.AddrPortFrom(netip.AddrFrom16(b), 1).String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
