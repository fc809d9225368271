package envoytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports of 20000 to 29999 lie outside the range from which systems take those of outgoing connections and of listeners
// that leave the choice to them (Linux from 32768, macOS from 49152). So nobody takes one by chance between two uses: not
// before Envoy listens, and not while a replica is closed.
const (
	firstPort = 20000
	portCount = 10000
)

var givenPorts = struct {
	sync.Mutex
	m map[int]bool
}{m: map[int]bool{}}

// FreePort returns a loopback port that nobody listens on at this moment, each time another one. Several goroutines may
// call it. It returns an error when it finds none.
func FreePort() (int, error) {
	l, err := listenFree("127.0.0.1")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// listenFree listens on a port that this process has not given away yet.
func listenFree(host string) (net.Listener, error) {
	givenPorts.Lock()
	defer givenPorts.Unlock()
	var failed error
	for range 1000 {
		port := firstPort + rand.IntN(portCount)
		if givenPorts.m[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			givenPorts.m[port] = true
			return l, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("envoytest: no free port of %d to %d on %s: %w", firstPort, firstPort+portCount-1, host, failed)
}
