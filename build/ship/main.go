// Command ship makes what a release consists of, puts its images into a registry and looks at what is in one. `make oci` and
// `make release` run it; it is a Go module of its own so that what talks to registries stays out of Pinwheel's.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
	"github.com/pinwheel-proxy/pinwheel/build/ship/pull"
)

const usage = `usage:
  ship layout [--version V] MODULE.wasm FOLDER   write the images as an OCI layout
  ship push LAYOUT REGISTRY/REPOSITORY           push them; LAYOUT is a folder or a tar of one; logs in as docker does
  ship check [--sha256 HEX] IMAGE                would Istio and Envoy Gateway take this image?
  ship registry HOST:PORT                        a registry that forgets all at its end, to try the above with
  ship ready VERSION                             may this checkout be released as VERSION?
  ship release --version V FOLDER                describe and check-sum what was built into the folder
SOURCE_DATE_EPOCH (seconds, default 0) is the time that images name.`

// errUsage is a mistake on the command line.
var errUsage = errors.New(usage)

func main() {
	err := run(os.Args[1:], os.Stdout)
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "ship: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	version := flags.String("version", "dev", "")
	sha256 := flags.String("sha256", "", "")
	if err := flags.Parse(args[1:]); errors.Is(err, flag.ErrHelp) {
		return errUsage
	} else if err != nil {
		return fmt.Errorf("%w\n%w", err, errUsage)
	}
	created, err := epoch(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	command := fmt.Sprintf("%s %d", args[0], flags.NArg())
	switch command {
	case "layout 2":
		return writeLayout(flags.Arg(0), flags.Arg(1), image.About{Version: *version, Created: created}, out)
	case "push 2":
		return push(flags.Arg(0), flags.Arg(1), out)
	case "check 1":
		return checkImage(flags.Arg(0), *sha256, out)
	case "registry 1":
		return serveRegistry(flags.Arg(0), out)
	case "ready 1":
		return ready(".", flags.Arg(0))
	case "release 1":
		return release(flags.Arg(0), image.About{Version: *version, Created: created}, out)
	}
	return errUsage
}

// epoch reads SOURCE_DATE_EPOCH: https://reproducible-builds.org/specs/source-date-epoch/
func epoch(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds >= 253402300800 { // the year 10000, which RFC 3339 does not write
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, allowed are seconds since 1970, below 253402300800", text)
	}
	return time.Unix(seconds, 0), nil
}

// withLogin takes users and passwords from where docker login puts them, credential helpers included.
func withLogin() remote.Option { return remote.WithAuthFromKeychain(authn.DefaultKeychain) }

// checkImage pulls an image as the gateways do; the reference may be a WasmPlugin's url.
func checkImage(reference, sha256 string, out io.Writer) error {
	if strings.HasPrefix(sha256, "sha256:") {
		return fmt.Errorf("--sha256 %s: want the 64 digits without sha256:, as the gateways' resources do", sha256)
	}
	wasm, manifest, err := pull.Module(strings.TrimPrefix(reference, "oci://"), sha256, withLogin())
	if errors.Is(err, pull.ErrUnreachable) {
		return fmt.Errorf("%s: %w", reference, err)
	} else if err != nil {
		return fmt.Errorf("%s: Istio and Envoy Gateway refuse it: %w", reference, err)
	}
	fmt.Fprintf(out, "%s: Istio and Envoy Gateway take it\nmanifest sha256:%s\nmodule   sha256:%s, %d bytes\n", reference, manifest, sum(wasm), len(wasm))
	return nil
}
