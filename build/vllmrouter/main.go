// Vllmrouter prints the folder of the router that tests compare with, to be used as PYTHONPATH, fetching it when this
// machine has none:
//
//	go run ./build/vllmrouter
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/pinwheel-proxy/pinwheel/build/vllmrouter/wheel"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "usage: vllmrouter\nprints the folder of vllm-router %s from PyPI, for PYTHONPATH\n", wheel.Version)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	folder, err := wheel.Find(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(folder)
}
