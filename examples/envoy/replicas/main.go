// Replicas runs stand-ins for model servers, to try Pinwheel without a GPU:
//
//	go run ./examples/envoy/replicas [ADDR...]
//
// Each speaks OpenAI's HTTP interface (package hostsim/replica) and says in its answer who it is and how much of the prompt
// it had cached. Default addresses are those of envoy.yaml.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

func main() {
	addrs := os.Args[1:]
	if len(addrs) == 0 {
		addrs = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"}
	}
	for _, addr := range addrs {
		if err := serve(addr); err != nil {
			fmt.Fprintf(os.Stderr, "replicas: %v\nusage: replicas [ADDR...], each host:port\n", err)
			os.Exit(1)
		}
		fmt.Println("replica on", addr)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}

// serve answers on addr until the process ends.
func serve(addr string) error {
	model, err := replica.New(replica.Config{Name: addr, CacheBlocks: 10_000})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(l, model) }()
	return nil
}
