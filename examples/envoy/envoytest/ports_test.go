package envoytest

import (
	"net"
	"strconv"
	"testing"
)

// A port is given once, lies where no system takes ports by itself, and is free, also
// that of a replica that was closed.
func TestFreePort(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		r := openReplica(t)
		r.Close()
		_, text, _ := net.SplitHostPort(r.Addr)
		replica, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []int{port, replica} {
			if seen[p] || p < firstPort || p >= firstPort+portCount {
				t.Errorf("port %d, given before: %v", p, seen[p])
			}
			seen[p] = true
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
