// Extproc is a replica picker behind Envoy's ext_proc filter, for the benchmark beside it to measure Pinwheel against: the
// decision of sticky_least_loaded, made by the same package policy, in a process of its own. It is a yardstick and no
// product: it releases no session, discovers no replica, never hears how a replica answered, and ends idle sessions only when
// its table is full or they come back.
//
//	go run . --replicas 10.0.0.1:8000,10.0.0.2:8000
//
// It prints the address that it serves on, once it does, and ends with SIGINT or SIGTERM.
//
// A yardstick must not be slow on purpose. One bidirectional stream for each request, with one message each way, is what
// Envoy's protocol asks for at least; the benchmark configures Envoy to send that, with the session header alone. Here, the
// session is read out of the message's bytes where they lie, answers are encoded once and then sent again, and what a
// decision holds the lock for is the decision. Generated types for both messages, as a picker would usually have them, made
// the whole of Envoy and picker 5 to 9% dearer. The size of the Go runtime's thread pool is Go's own choice.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "extproc:", err)
		os.Exit(1)
	}
}

// errUsage reports a command line that is not understood; what is wrong with it has been printed.
var errUsage = errors.New("usage")

// run serves until ctx ends.
func run(ctx context.Context, args []string, out, help io.Writer) error {
	flags := flag.NewFlagSet("extproc", flag.ContinueOnError)
	flags.SetOutput(help)
	listen := flags.String("listen", "127.0.0.1:0", "`address` to serve on: HOST:PORT (port 0 is any free one) or unix:PATH")
	replicas := flags.String("replicas", "", "`addresses` of the replicas, IP:PORT with commas between; required")
	header := flags.String("header", "x-session-id", "the request header, in lower case, that names the session")
	sessions := flags.Int("max-sessions", 100_000, "most sessions at a time, 1 or more; those beyond are not pinned")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	if flags.NArg() > 0 || *replicas == "" || *sessions < 1 {
		flags.Usage()
		return errUsage
	}
	p, err := newPicker(strings.Split(*replicas, ","), *header, *sessions)
	if err != nil {
		return err
	}
	network, address := "tcp", *listen
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return err
	}
	server := newServer(p)
	defer context.AfterFunc(ctx, server.Stop)()
	if network == "tcp" {
		fmt.Fprintln(out, l.Addr())
	} else {
		fmt.Fprintln(out, *listen)
	}
	return server.Serve(l) // nil after Stop
}
