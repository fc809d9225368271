// Vllm prints the folder of a vLLM that needs no GPU, with a tiny model, installing it when this machine has none:
//
//	go run ./build/vllm
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
)

func main() {
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "usage: vllm\nprints the folder of vLLM %s for CPUs from PyPI, installed on first use\n", engine.Version)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e, err := engine.Find(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(e.Dir)
}
