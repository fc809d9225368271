package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// serveFlags are the flags of serve, as given.
type serveFlags struct {
	wasm, config, listen, profile string
	upstreams, http2              []string
	configText, rootID, vmConfig  string
	simReplicas, workers          int
	cacheTokens                   int
	tokenTime                     time.Duration
	headersStop                   bool

	operation operationFlags

	recorder *hostsim.Recorder // not a flag: record sets it
}

func newServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Put a plugin behind a real HTTP listener",
		Long: `serve is an HTTP gateway (HTTP/1.1, and HTTP/2 without TLS) with the plugin in it, to try a plugin without Envoy.

The plugin's request header x-gateway-destination-endpoint picks the upstream host: a comma list of addresses, first
choice first; unknown ones are passed over, the next one is tried when a host takes no connection or cuts it before it
has answered, and then the cluster's hosts round robin. A request whose Host header is a cluster's name goes to that
cluster, any other to the first. Without --wasm there is no plugin and all goes round robin. The plugin's own
requests, HTTP and gRPC, go to the cluster that they name.

It stops on SIGINT or SIGTERM when the running requests have ended, after --stop-timeout at most; on a second one at once.
On SIGHUP it opens the access log again and reads the files of --wasm and --config; a bad one changes nothing.`,
		Example: `  # Pinwheel before three simulated model servers, on 127.0.0.1:8080
  hostsim serve --wasm dist/pinwheel.wasm --sim-replicas 3

  # before your own
  hostsim serve --wasm dist/pinwheel.wasm --upstream vllm=127.0.0.1:8000,127.0.0.1:8001 \
      --config '{"replicas": ["127.0.0.1:8000", "127.0.0.1:8001"]}'

  # the same, with a web page that shows what happens, and a line about each request
  hostsim serve --wasm dist/pinwheel.wasm --sim-replicas 3 --page :8081 --access-log access.jsonl

  # any plugin, its configuration in a file, four workers, as an older Envoy
  hostsim serve --wasm my.wasm --config my.json --upstream web=localhost:9000 --workers 4 --profile envoy-1.36

  # one that wants a word, and is one of several in its module
  hostsim serve --wasm my.wasm --config-text sesame --root-id gate --upstream web=localhost:9000`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	return cmd
}

// add gives a command the flags.
func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.wasm, "wasm", "", "the plugin, a .wasm `FILE`; none means round robin without a plugin")
	flags.StringVar(&f.config, "config", "", "the plugin's configuration: a `FILE`, or JSON that begins with {")
	flags.StringVar(&f.configText, "config-text", "", "the plugin's configuration as `TEXT`, whatever it looks like")
	flags.StringVar(&f.vmConfig, "vm-config", "", "the virtual machine's configuration, as `TEXT`")
	flags.StringVar(&f.rootID, "root-id", "", "the plugin's `ROOT_ID`, by which some SDKs choose among plugins in one module")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "`ADDRESS` to listen on")
	flags.StringArrayVar(&f.upstreams, "upstream", nil, "`CLUSTER=HOST:PORT[,HOST:PORT...]`; repeat it for more clusters")
	flags.StringArrayVar(&f.http2, "http2", nil, "speak HTTP/2 without TLS to this `CLUSTER`, as gRPC servers do; repeat it for more")
	flags.IntVar(&f.simReplicas, "sim-replicas", 0, "start `N` simulated model servers as the upstream; a --config that names no\nreplicas gets their addresses")
	flags.IntVar(&f.cacheTokens, "sim-cache-tokens", defaultCacheTokens, "prefix cache of each simulated replica, in `TOKENS`; 0 is without bound")
	flags.DurationVar(&f.tokenTime, "sim-token-time", 0, "`TIME` that each simulated replica takes for each token of an answer")
	flags.IntVar(&f.workers, "workers", 2, "`N` worker threads, each with its own virtual machine")
	flags.StringVar(&f.profile, "profile", hostsim.Profiles()[0].Name, "gateway to imitate: envoy-1.36, envoy-1.40 or permissive")
	flags.BoolVar(&f.headersStop, "allow-on-headers-stop-iteration", false, "let the plugin see the body while it pauses in the headers\n(Envoy's option of that name)")
	f.operation.add(cmd)
}

// check finds mistakes on the command line before anything is started.
func (f *serveFlags) check() error {
	switch {
	case len(f.upstreams) == 0 && f.simReplicas == 0:
		return usagef("nothing to forward to: give --upstream CLUSTER=HOST:PORT or --sim-replicas N")
	case len(f.upstreams) > 0 && f.simReplicas != 0:
		return usagef("give --upstream or --sim-replicas, not both")
	case f.simReplicas < 0 || f.simReplicas > 256:
		return usagef("--sim-replicas %d is outside 1 to 256", f.simReplicas)
	case f.cacheTokens < 0:
		return usagef("--sim-cache-tokens %d is negative", f.cacheTokens)
	case f.tokenTime < 0:
		return usagef("--sim-token-time %v is negative", f.tokenTime)
	case f.workers < 1 || f.workers > 256:
		return usagef("--workers %d is outside 1 to 256", f.workers)
	case f.wasm == "" && f.config+f.configText+f.rootID+f.vmConfig != "":
		return usagef("--config, --config-text, --vm-config and --root-id are for a plugin: give --wasm too")
	case f.config != "" && f.configText != "":
		return usagef("give --config or --config-text, not both")
	}
	return f.operation.check()
}

// parseUpstreams reads the --upstream flags.
func parseUpstreams(flags, http2 []string) ([]gateway.Cluster, error) {
	var clusters []gateway.Cluster
	for _, f := range flags {
		name, hosts, ok := strings.Cut(f, "=")
		if !ok || name == "" || hosts == "" {
			return nil, usagef("--upstream %q is not CLUSTER=HOST:PORT[,HOST:PORT...]", f)
		}
		c := gateway.Cluster{Name: name, Hosts: strings.Split(hosts, ",")}
		for _, h := range c.Hosts {
			if err := gateway.ValidateAddress(h); err != nil {
				return nil, usagef("--upstream %s: %w", name, err)
			}
		}
		clusters = append(clusters, c)
	}
	for _, name := range http2 {
		i := slices.IndexFunc(clusters, func(c gateway.Cluster) bool { return c.Name == name })
		if i < 0 {
			return nil, usagef("--http2 %s: no --upstream has that name", name)
		}
		clusters[i].HTTP2 = true
	}
	return clusters, nil
}

func serve(ctx context.Context, f *serveFlags, stdout, stderr io.Writer) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	profile, err := profileFlag(f.profile)
	if err != nil {
		return err
	}
	clusters, err := parseUpstreams(f.upstreams, f.http2)
	if err != nil {
		return err
	}
	hangups, release := catchHangups()
	defer release()
	said := stdout
	if f.operation.accessLog == "-" {
		said = stderr
	}
	// The ports first: they are the likeliest to fail, and the plugin takes seconds to compile.
	ln, err := listen("--listen", f.listen)
	if err != nil {
		return err
	}
	defer ln.Close()
	o, err := f.operation.open(stdout, stderr)
	if err != nil {
		return err
	}
	defer o.close()
	files := &pluginFiles{flags: f, clusters: clusters}
	var sim *fleet
	if f.simReplicas > 0 {
		if sim, err = startFleet(f.simReplicas, replica.Config{CacheBlocks: f.cacheTokens / cacheBlockTokens, DecodePerToken: f.tokenTime, TimeScale: 1}); err != nil {
			return err
		}
		defer func() { _ = sim.stop() }()
		files.sim, files.clusters = sim.addresses, []gateway.Cluster{{Name: simCluster, Hosts: sim.addresses}}
	}
	if err := files.read(); err != nil {
		return err
	}
	var host *hostsim.Host
	if f.wasm != "" {
		caller, err := gateway.NewCaller(files.clusters)
		if err != nil {
			return usageError{err}
		}
		defer caller.Close()
		host, err = startPlugin(ctx, hostsim.Config{HTTPCall: caller.Call, GRPCCall: caller.GRPC, Wasm: files.wasm, Profile: profile, Workers: f.workers,
			PluginConfig: files.config, VMConfig: []byte(f.vmConfig), RootID: f.rootID, AllowOnHeadersStopIteration: f.headersStop,
			Recorder: f.recorder}, hostsim.LogInfo, stderr)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, host.Close()) }() // which ends the recording
	}
	var g *gateway.Gateway
	c := gateway.Config{Host: host, Clusters: files.clusters}
	o.attach(&c, ln.Addr().String(), func() []gateway.Upstream { return g.Upstreams() }, host, sim)
	if g, err = gateway.New(c); err != nil {
		return usageError{err} // by now only flags can be wrong
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o.serve(ctx)
	announce(said, ln.Addr().String(), host != nil, files.clusters, o, sim != nil)
	reloading := reloadOnHangup(ctx, hangups, files, host, o.log, stderr, stop) // files is its own from here on
	err = g.Serve(ctx, ln)
	stop()
	<-reloading
	if host != nil {
		err = errors.Join(err, host.Shutdown())
	}
	return err
}

// listen opens the port of a flag; the error says what to do about a port that is taken.
func listen(flag, address string) (net.Listener, error) {
	ln, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: stop what listens there, or choose another port, such as %s 127.0.0.1:8082 "+
			"(make serve %s=127.0.0.1:8082)", err, flag, strings.ToUpper(strings.TrimLeft(flag, "-")))
	}
	if wrong := (*net.AddrError)(nil); errors.As(err, &wrong) {
		return nil, usagef("%s: %w; want HOST:PORT, such as 127.0.0.1:8082", flag, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return ln, nil
}

// announce says where the gateway is and what to try.
func announce(w io.Writer, address string, plugin bool, clusters []gateway.Cluster, o *operation, sim bool) {
	how := "the plugin routes"
	if !plugin {
		how = "round robin, no plugin"
	}
	fmt.Fprintf(w, "Listening on http://%s (%s). Stop with Ctrl-C.\n", address, how)
	for _, c := range clusters {
		fmt.Fprintf(w, "  cluster %s: %s\n", c.Name, strings.Join(c.Hosts, " "))
	}
	o.announce(w)
	if sim {
		fmt.Fprint(w, "\n"+curlLines(address))
	}
}

// curlLines shows by hand what the demo shows in numbers: a session keeps its replica and finds its prompt cached there,
// another session gets another replica, and a released one is placed anew. The prompt is long enough for full blocks.
func curlLines(address string) string {
	return strings.ReplaceAll(`Try, in another terminal, each of the two several times:
  P='{"messages":[{"role":"user","content":"'$(seq -s, 200)'"}]}'
  curl -s ADDRESS/v1/chat/completions -H 'X-Session-ID: planner' -d "$P" | grep -o 'Replica[^"]*'
  curl -s ADDRESS/v1/chat/completions -H 'X-Session-ID: coder' -d "$P" | grep -o 'Replica[^"]*'
When planner is done:
  curl -s -X POST 'ADDRESS/finish_session?session_id=planner'
For OpenAI's SDKs: OPENAI_BASE_URL=http://ADDRESS/v1, any key, and the header X-Session-ID.
`, "ADDRESS", address)
}
