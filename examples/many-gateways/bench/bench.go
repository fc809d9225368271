package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// bench is a run.
type bench struct {
	root, envoy string
	rounds      int
	part        string
	rows        []row
}

func (b *bench) add(of, figure, unit string, values ...float64) {
	r := newRow(b.part, of, figure, unit, values)
	b.rows = append(b.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s: %s\n", of, figure, r.text())
}

// site is gateways with what they need.
type site struct {
	*fleet.Fleet
	replicas []string
	etcd     *etcdtest.Server // nil: no agreement
	close    []func()
}

func (s *site) end() {
	for i := range s.close {
		s.close[len(s.close)-1-i]()
	}
}

// start brings up so many gateways and replicas, the plugin configured as edit says. Nobody here is so busy that 50 ms are not
// enough, but for the machine: the gateways wait for etcd as long as it takes.
func (b *bench) start(ctx context.Context, gateways, replicas int, agreed bool, edit func(map[string]any)) (*site, error) {
	if !agreed {
		return b.startWith(ctx, gateways, replicas, nil, edit)
	}
	dir, err := os.MkdirTemp("", "pinwheel-bench-")
	if err != nil {
		return nil, err
	}
	etcd, err := etcdtest.Start(ctx, etcdtest.Options{Dir: dir})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	end := func() {
		etcd.Stop()
		os.RemoveAll(dir)
	}
	s, err := b.startWith(ctx, gateways, replicas, []string{etcd.Addr}, edit)
	if err != nil {
		end()
		return nil, err
	}
	s.etcd, s.close = etcd, append([]func(){end}, s.close...)
	return s, nil
}

// startWith is start with etcd's members; none is no agreement.
func (b *bench) startWith(ctx context.Context, gateways, replicas int, etcd []string, edit func(map[string]any)) (*site, error) {
	s := &site{}
	for range replicas {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })}
		go func() { _ = server.Serve(l) }()
		s.close = append(s.close, func() { server.Close() })
		s.replicas = append(s.replicas, l.Addr().String())
	}
	o := fleet.Options{Binary: b.envoy, Root: b.root, Gateways: make([]fleet.Ports, gateways), Replicas: s.replicas, Etcd: etcd, Workers: 1}
	o.Plugin = func(c map[string]any) {
		c["admin"] = map[string]any{}
		if a := fleet.Agreement(c); a != nil {
			a["timeout"] = "5s"
		}
		if edit != nil {
			edit(c)
		}
	}
	var err error
	if s.Fleet, err = fleet.Start(ctx, o); err != nil {
		s.end()
		return nil, err
	}
	s.close = append(s.close, s.Fleet.Stop)
	time.Sleep(5 * time.Second) // all leases are there, and nobody compiles any more
	return s, nil
}

// cpu is what the gateways, or etcd, have run.
func (s *site) cpu(etcd bool) (sum time.Duration, err error) {
	if etcd {
		return envoytest.CPUTime(s.etcd.Pid())
	}
	for _, g := range s.Gateways {
		d, err := envoytest.CPUTime(g.Envoy.Pid())
		if err != nil {
			return 0, err
		}
		sum += d
	}
	return sum, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return micros(d) / 1e3 }

// some sends a turn of each session, one after another, at one gateway, and returns the median latency in ms.
func (s *site) some(ctx context.Context, gateway int, name string, from, n int) (float64, error) {
	took := make([]time.Duration, n)
	for i := range n {
		a := s.Gateways[gateway].Turn(ctx, fmt.Sprint(name, "-", from+i))
		if why := a.Failed(); why != "" {
			return 0, fmt.Errorf("a turn failed: %s", why)
		}
		took[i] = a.Took
	}
	slices.Sort(took)
	return millis(fleet.Quantile(took, 0.5)), nil
}

// cost measures what an agreement costs.
func (b *bench) cost(ctx context.Context) error {
	if err := b.turns(ctx); err != nil {
		return err
	}
	return b.rate(ctx)
}

// turns compares first and later turns of two gateways that agree with those of one that is alone.
func (b *bench) turns(ctx context.Context) error {
	alone, err := b.start(ctx, 1, 4, false, nil)
	if err != nil {
		return err
	}
	defer alone.end()
	agreed, err := b.start(ctx, 2, 4, true, nil)
	if err != nil {
		return err
	}
	defer agreed.end()
	const firsts, laters = 60, 600
	type arm struct {
		site    *site
		gateway int
		later   bool
	}
	arms := []arm{{alone, 0, false}, {agreed, 0, false}, {agreed, 1, false}, {alone, 0, true}, {agreed, 0, true}, {agreed, 1, true}}
	values := make([][]float64, len(arms))
	var etcdCPU, cpuAlone, cpuAgreed []float64
	for round := range b.rounds {
		now := make([]float64, len(arms))
		before, err := agreed.cpu(true)
		if err != nil {
			return err
		}
		for i, a := range arms {
			if a.later {
				continue
			}
			if now[i], err = a.site.some(ctx, a.gateway, "s", round*firsts, firsts); err != nil {
				return err
			}
		}
		after, err := agreed.cpu(true)
		if err != nil {
			return err
		}
		etcdCPU = append(etcdCPU, millis(after-before)/firsts)
		parts := make([][]float64, len(arms))
		cpu := map[*site]time.Duration{}
		for slice := range laters / firsts { // in short turns, so that what disturbs the machine comes to all
			for k := range arms {
				i := k
				if slice%2 == 1 {
					i = len(arms) - 1 - k
				}
				a := arms[i]
				if !a.later {
					continue
				}
				before, err := a.site.cpu(false)
				if err != nil {
					return err
				}
				v, err := a.site.some(ctx, a.gateway, "s", round*firsts, firsts)
				if err != nil {
					return err
				}
				after, err := a.site.cpu(false)
				if err != nil {
					return err
				}
				cpu[a.site] += after - before
				parts[i] = append(parts[i], v)
			}
		}
		for i := range arms {
			if arms[i].later {
				slices.Sort(parts[i])
				now[i] = fleet.Quantile(parts[i], 0.5)
			}
			values[i] = append(values[i], now[i])
		}
		cpuAlone = append(cpuAlone, micros(cpu[alone])/laters)
		cpuAgreed = append(cpuAgreed, micros(cpu[agreed])/laters/2)
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, b.rounds)
	}
	b.add("", "first turn, one gateway alone, p50", "ms", values[0]...)
	b.add("", "first turn, agreed through etcd, p50", "ms", values[1]...)
	b.add("", "first turn at the other gateway, p50", "ms", values[2]...)
	b.add("", "agreed first turn, beyond one gateway's", "ms", combine(values[1], values[0], func(x, y float64) float64 { return x - y })...)
	b.add("", "later turn, one gateway alone, p50", "ms", values[3]...)
	both := combine(values[4], values[5], func(x, y float64) float64 { return (x + y) / 2 })
	b.add("", "later turn, agreed, p50", "ms", both...)
	over := func(x, y float64) float64 { return x / y }
	b.add("", "agreed later turn, of one gateway's, p50", "times", combine(both, values[3], over)...)
	b.add("", "the same, CPU of Envoy", "times", combine(cpuAgreed, cpuAlone, over)...)
	b.add("", "CPU of etcd for a session that comes to both gateways", "ms", etcdCPU...)
	return nil
}

func combine(a, b []float64, f func(a, b float64) float64) []float64 {
	v := make([]float64, len(a))
	for i := range a {
		v[i] = f(a[i], b[i])
	}
	return v
}

// rate sends first turns by many clients.
func (b *bench) rate(ctx context.Context) error {
	s, err := b.start(ctx, 2, 4, true, nil)
	if err != nil {
		return err
	}
	defer s.end()
	const sessions = 3000
	var rate, etcdCPU, envoyCPU []float64
	for round := range max(3, b.rounds/3) {
		etcd, err := s.cpu(true)
		if err != nil {
			return err
		}
		envoy, err := s.cpu(false)
		if err != nil {
			return err
		}
		began := time.Now()
		all := s.Run(ctx, fleet.Load{Name: fmt.Sprint("rate", round), Sessions: sessions, Turns: 1, Clients: 32})
		took := time.Since(began)
		if failed := all.Failed(); len(failed) > 0 {
			return fmt.Errorf("%d turns failed: %s", len(failed), failed[0])
		}
		etcdAfter, err := s.cpu(true)
		if err != nil {
			return err
		}
		envoyAfter, err := s.cpu(false)
		if err != nil {
			return err
		}
		rate = append(rate, sessions/took.Seconds())
		etcdCPU = append(etcdCPU, millis(etcdAfter-etcd)/sessions)
		envoyCPU = append(envoyCPU, millis(envoyAfter-envoy)/sessions)
	}
	b.add("", "new sessions a second, 32 clients", "/s", rate...)
	b.add("", "CPU of etcd for each", "ms", etcdCPU...)
	b.add("", "CPU of Envoy for each", "ms", envoyCPU...)
	return nil
}

// sizing has etcd hold many sessions, which gateways count once a second.
func (b *bench) sizing(ctx context.Context) error {
	s, err := b.start(ctx, 2, 4, true, nil)
	if err != nil {
		return err
	}
	defer s.end()
	const window = 15 * time.Second
	filled := 0
	for _, sessions := range []int{0, 10_000, 100_000} {
		if err := s.fill(ctx, filled, sessions); err != nil {
			return err
		}
		filled = sessions
		time.Sleep(3 * time.Second)
		if err := s.counted(ctx, sessions); err != nil {
			return err
		}
		before, err := s.cpu(true)
		if err != nil {
			return err
		}
		began := time.Now()
		time.Sleep(window)
		after, err := s.cpu(true)
		if err != nil {
			return err
		}
		name := short(float64(sessions)) + " sessions"
		b.add(name, "CPU of etcd for two pollers, of a core", "%", 100*(after-before).Seconds()/time.Since(began).Seconds())
		var took []float64
		for range 2*b.rounds + 1 {
			began := time.Now()
			if _, err := s.etcd.Do(ctx, "/v3/kv/txn", "", s.pollTxn()); err != nil {
				return err
			}
			took = append(took, millis(time.Since(began)))
		}
		b.add(name, "time of a poll", "ms", took...)
		var writes []float64
		for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(4 * time.Millisecond) {
			began := time.Now()
			if _, err := s.etcd.Do(ctx, "/v3/kv/put", "", map[string]any{"key": etcdtest.B64("/probe"), "value": etcdtest.B64("x")}); err != nil {
				return err
			}
			writes = append(writes, millis(time.Since(began)))
		}
		slices.Sort(writes)
		b.add(name, "write beside two pollers, p99", "ms", fleet.Quantile(writes, 0.99))
		{
			size, _, err := s.etcd.DatabaseBytes(ctx)
			if err != nil {
				return err
			}
			b.add(name, "etcd's database", "MB", float64(size)/1e6)
			resident, err := envoytest.ResidentBytes(s.etcd.Pid())
			if err != nil {
				return err
			}
			b.add(name, "etcd's memory", "MB", float64(resident)/1e6)
		}
	}
	return nil
}

const keys = "/pinwheel/default/"

// fill writes the keys of sessions as gateways do, on leases of a thousand sessions each.
func (s *site) fill(ctx context.Context, from, to int) error {
	r := rand.New(rand.NewPCG(uint64(from), 1))
	for from < to {
		lease := strconv.Itoa(1_000_000 + from/1000)
		if from%1000 == 0 {
			if _, err := s.etcd.Do(ctx, "/v3/lease/grant", "", map[string]any{"ID": lease, "TTL": "12600"}); err != nil {
				return err
			}
		}
		var ops []any
		put := func(key, value string) {
			ops = append(ops, map[string]any{"requestPut": map[string]any{"key": etcdtest.B64(key), "value": etcdtest.B64(value), "lease": lease}})
		}
		for n := 0; n < 50 && from < to; n++ {
			id := make([]byte, 16)
			for i := range id {
				id[i] = byte(r.Uint32())
			}
			session, home := hex.EncodeToString(id), s.replicas[from%len(s.replicas)]
			put(keys+"s/"+session, home)
			put(keys+"r/"+home+"/"+session, "")
			from++
		}
		if _, err := s.etcd.Do(ctx, "/v3/kv/txn", "", map[string]any{"success": ops}); err != nil {
			return err
		}
	}
	return nil
}

// counted fails unless the gateways count so many sessions.
func (s *site) counted(ctx context.Context, sessions int) error {
	for _, g := range s.Gateways {
		status, err := g.Status(ctx)
		if err != nil {
			return err
		}
		sum := 0
		for _, r := range status.Pools[0].Replicas {
			sum += r.FleetSessions
		}
		if sum != sessions || status.Pools[0].Agreement.State != "ok" {
			return fmt.Errorf("a gateway counts %d sessions, want %d: %+v", sum, sessions, status.Pools[0])
		}
	}
	return nil
}

// pollTxn is what a gateway asks in a poll.
func (s *site) pollTxn() any {
	var ops []any
	for _, r := range s.replicas {
		count := etcdtest.Prefix(keys + "r/" + r + "/")
		count["count_only"] = true
		ops = append(ops, map[string]any{"requestRange": count})
	}
	changes := etcdtest.Prefix(keys + "f/")
	changes["min_mod_revision"] = "1000000000"
	return map[string]any{"success": append(ops, map[string]any{"requestRange": changes})}
}

// choices compares what gateways may do, by how sessions are spread and what the loss of a gateway does to them.
func (b *bench) choices(ctx context.Context) error {
	for _, c := range []choice{
		{"each for itself", 2, false, nil, ""},
		{"`ring_hash` in front of 2", 2, false, nil, "ring_hash"},
		{"`ring_hash` in front of 4", 4, false, nil, "ring_hash"},
		{"`maglev` in front of 2", 2, false, nil, "maglev"},
		{"`maglev` in front of 4", 4, false, nil, "maglev"},
		{"`consistent_hash`, no bound", 2, false, func(c map[string]any) {
			c["policy"], c["consistent_hash"] = "consistent_hash", map[string]any{"load_factor": 0}
		}, ""},
		{"`agreement`", 2, true, nil, ""},
	} {
		if err := b.try(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// choice is a way for several gateways.
type choice struct {
	name     string
	gateways int
	agreed   bool
	edit     func(map[string]any)
	front    string // the load balancer of an Envoy in front that hashes the session's id
}

func (b *bench) try(ctx context.Context, c choice) error {
	const sessions, replicas = 2000, 4
	s, err := b.start(ctx, c.gateways, replicas, c.agreed, c.edit)
	if err != nil {
		return err
	}
	defer s.end()
	all := s.Fleet
	if c.front != "" {
		f, err := b.front(ctx, s, c.front)
		if err != nil {
			return err
		}
		defer f.Envoy.Stop()
		all = &fleet.Fleet{Gateways: []*fleet.Gateway{f}}
	}
	// Two turns of each session, which clients send to any gateway.
	turns := all.Run(ctx, fleet.Load{Name: "spread", Sessions: sessions, Turns: 2, Clients: 8})
	if failed := turns.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d turns failed: %s", len(failed), failed[0])
	}
	b.add(c.name, "sessions with turns on two replicas", "%", 100*float64(len(turns.Disagreeing()))/sessions)
	b.add(c.name, "fullest replica", "of 500", float64(slices.Max(turns.Spread(s.replicas))))
	if c.front != "" {
		most := 0
		for _, g := range s.Gateways {
			status, err := g.Status(ctx)
			if err != nil {
				return err
			}
			open := 0
			for _, r := range status.Pools[0].Replicas {
				open += r.OpenSessions
			}
			most = max(most, open)
		}
		b.add(c.name, "fullest gateway", fmt.Sprint("of ", sessions/c.gateways), float64(most))
	}
	// The last gateway goes; its clients come to another.
	s.Gateways[c.gateways-1].Envoy.Stop()
	if c.front == "" {
		all = &fleet.Fleet{Gateways: s.Gateways[:c.gateways-1]}
	} else {
		time.Sleep(3 * time.Second) // two health checks
	}
	after := all.More(ctx, turns, fleet.Load{Turns: 1, Clients: 8})
	if failed := after.Failed(); len(failed) > 0 {
		return fmt.Errorf("%d turns failed: %s", len(failed), failed[0])
	}
	moved, homes := 0, turns.Homes()
	for id, home := range after.Homes() {
		if homes[id] != home {
			moved++
		}
	}
	b.add(c.name, "sessions moved when a gateway went", "%", 100*float64(moved)/sessions)
	return nil
}

// front starts an Envoy that sends each session to one of the gateways, by a hash of its id.
func (b *bench) front(ctx context.Context, s *site, policy string) (*fleet.Gateway, error) {
	port, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	message := map[string]string{"ring_hash": "ring_hash.v3.RingHash", "maglev": "maglev.v3.Maglev"}[policy]
	endpoints := ""
	for _, g := range s.Gateways {
		_, port, _ := net.SplitHostPort(g.Addr)
		endpoints += "        - {endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: " + port + "}}}}\n"
	}
	dir, err := os.MkdirTemp("", "pinwheel-front-")
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "front.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, frontText, port, policy, message, endpoints), 0o600); err != nil {
		return nil, err
	}
	envoy, err := envoytest.Start(ctx, envoytest.Options{Binary: b.envoy, Bootstrap: file, Concurrency: 1})
	if err != nil {
		return nil, err
	}
	time.Sleep(2 * time.Second) // health checks
	return fleet.New(net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), envoy), nil
}

const frontText = `admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}
static_resources:
  listeners:
  - name: front
    address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: front
          route_config:
            virtual_hosts:
            - name: gateways
              domains: ["*"]
              routes:
              - {match: {prefix: /}, route: {cluster: gateways, timeout: 0s, hash_policy: [{header: {header_name: x-session-id}}]}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
  - name: gateways
    type: STATIC
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: envoy.load_balancing_policies.%s
          typed_config: {"@type": type.googleapis.com/envoy.extensions.load_balancing_policies.%s}
    health_checks: [{timeout: 5s, interval: 1s, no_traffic_interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: {}}]
    load_assignment:
      cluster_name: gateways
      endpoints:
      - lb_endpoints:
%s`

// outages takes etcd away under load, as the end-to-end tests do.
func (b *bench) outages(ctx context.Context) error {
	one, err := b.start(ctx, 2, 4, true, func(c map[string]any) { delete(fleet.Agreement(c), "timeout") })
	if err != nil {
		return err
	}
	defer one.end()
	again := func() error { return one.etcd.Again(ctx) }
	for _, c := range []struct {
		name       string
		begin, end func() error
		lasts      time.Duration
	}{
		{"killed, back after 4 s", void(one.etcd.Kill), again, 4 * time.Second},
		{"hangs for 4 s", void(one.etcd.Hold), void(one.etcd.Release), 4 * time.Second},
		{"restarted", void(one.etcd.Stop), again, 0},
	} {
		var all []fleet.Outage
		for i := range max(1, b.rounds/5) {
			o, err := one.During(ctx, fmt.Sprint(c.name[:4], i), c.begin, c.end, c.lasts)
			if err != nil {
				return err
			}
			all = append(all, o)
			time.Sleep(2 * time.Second)
		}
		b.lost(c.name, all)
	}
	for _, name := range []string{hangs, killed} {
		var all []fleet.Outage
		for range max(1, b.rounds/5) {
			o, err := b.member(ctx, name)
			if err != nil {
				return err
			}
			all = append(all, o)
		}
		b.lost(name, all)
	}
	return nil
}

const (
	hangs  = "one of three members hangs for 5 s"
	killed = "the leader of three killed"
)

// member takes one of three members of etcd away, in the way of that name.
func (b *bench) member(ctx context.Context, name string) (o fleet.Outage, err error) {
	dir, err := os.MkdirTemp("", "pinwheel-bench-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	members, err := etcdtest.StartCluster(ctx, 3, etcdtest.Options{Dir: dir})
	if err != nil {
		return o, err
	}
	var addresses []string
	for _, m := range members {
		defer m.Stop()
		addresses = append(addresses, m.Addr)
	}
	s, err := b.startWith(ctx, 2, 4, addresses, func(c map[string]any) { delete(fleet.Agreement(c), "timeout") })
	if err != nil {
		return o, err
	}
	defer s.end()
	leader := etcdtest.Leader(ctx, members)
	if leader == nil {
		return o, fmt.Errorf("no member leads")
	}
	if name == killed {
		return s.During(ctx, "leader", void(leader.Kill), void(func() {}), 0)
	}
	follower := members[0]
	if follower == leader {
		follower = members[1]
	}
	return s.During(ctx, "member", void(follower.Hold), void(follower.Release), 5*time.Second)
}

func void(f func()) func() error {
	return func() error {
		f()
		return nil
	}
}

func (b *bench) lost(name string, all []fleet.Outage) {
	values := map[string][]float64{}
	note := func(figure string, v float64) { values[figure] = append(values[figure], v) }
	for _, o := range all {
		note("failed", float64(len(o.Meanwhile.Failed())))
		note("waited 50 ms", float64(o.TimedOut))
		note("on two", float64(len(o.Meanwhile.Disagreeing())))
		note("without", o.Degraded.Seconds())
	}
	b.add(name, "failed turns", "of 2,700", values["failed"]...)
	b.add(name, "questions in vain for 50 ms", "", values["waited 50 ms"]...)
	b.add(name, "sessions on two replicas meanwhile", "of 900", values["on two"]...)
	b.add(name, "a gateway did without etcd for", "s", values["without"]...)
}
