//go:build peer

package vllmrouter

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// servedBy is the response header in which a replica names itself: both routers pass it on.
const servedBy = "X-Served-By"

// replica is a stand-in for a model server: it answers everything at once and names itself.
type replica struct {
	address string
	// sick makes its health check fail. Turns that are sent to it all the same are answered.
	sick atomic.Bool
}

func (r *replica) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	_, _ = io.Copy(io.Discard, request.Body)
	w.Header().Set(servedBy, r.address)
	w.Header().Set("Content-Type", "application/json")
	if request.URL.Path == "/health" && r.sick.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[]}`)
}

// openReplicas starts n replicas on loopback ports, until the test ends.
func openReplicas(t *testing.T, n int) []*replica {
	t.Helper()
	var all []*replica
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r := &replica{address: ln.Addr().String()}
		server := &http.Server{Handler: r}
		done := make(chan error, 1)
		go func() { done <- server.Serve(ln) }()
		t.Cleanup(func() {
			_ = server.Close()
			<-done
		})
		all = append(all, r)
	}
	return all
}

func addresses(all []*replica) []string {
	var out []string
	for _, r := range all {
		out = append(out, r.address)
	}
	return out
}
