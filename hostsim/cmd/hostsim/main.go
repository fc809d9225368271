// Command hostsim runs proxy-wasm plugins without a gateway: in declarative cases, behind a real HTTP listener, before
// simulated model servers, or under inspection. `hostsim --help` lists its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what does not stop by itself, such as a plugin that hangs
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
