// Replicas runs stand-ins for model servers, to try Pinwheel without a GPU:
//
//	go run ./examples/envoy/replicas [ADDR...]
//
// Each answers every request with its own address. Default addresses are those
// of envoy.yaml.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

func main() {
	addrs := os.Args[1:]
	if len(addrs) == 0 {
		addrs = []string{"127.0.0.1:8001", "127.0.0.1:8002", "127.0.0.1:8003"}
	}
	for _, addr := range addrs {
		r, err := envoytest.OpenReplica(addr)
		if err != nil {
			fmt.Fprintf(os.Stderr, "replicas: %v\nusage: replicas [ADDR...], each host:port\n", err)
			os.Exit(1)
		}
		fmt.Println("replica on", r.Addr)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
}
