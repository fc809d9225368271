package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

var steps = experiment{
	name:  "steps",
	title: "Step by step",
	about: "Where that cost comes from. All are listeners of one Envoy on one thread, with hand-written wasm of official Go that does " +
		"what the line says and nothing else. *Callbacks*: each line has those of the lines above, too; *this alone* is the difference to " +
		"the line above. *One call*: request headers (or an answer's) make the call 50 times; *this alone* is what one of them costs. " +
		"*Carrier*: how the host gets to the load balancer, with a route table of one and of 200 routes; *this alone* is the difference to " +
		"all callbacks and no call with as many routes. Replacing a header makes Envoy choose the route again. A property is a filter " +
		"state, which the virtual host's `request_headers_to_add` makes the header of.",
	run: runSteps,
}

// filterState makes a virtual host set the target header to the property "dest".
const filterState = `              request_headers_to_add: [{header: {key: x-gateway-destination-endpoint, value: "%FILTER_STATE(wasm.dest:PLAIN)%"}, append_action: OVERWRITE_IF_EXISTS_OR_ADD}]` + "\n"

// manyCalls is how often a call is made to tell what one costs.
const manyCalls = 50

// stepLine is one listener of the experiment.
type stepLine struct {
	of, arm string
	keep    []string       // callbacks; nil for no plugin
	config  map[string]any // what the callbacks do
	times   int            // how often that is
	routes  int            // 0 is 1
	state   bool           // the route takes the host from filter state
	base    int            // the line that it is compared with; -1 for none
}

// stepLines are all listeners.
func stepLines(replicas []string) (lines []stepLine) {
	kept := []string{"proxy_abi_version_0_2_1", "proxy_on_memory_allocate", "proxy_on_vm_start", "proxy_on_configure"}
	add := func(l stepLine) int {
		lines = append(lines, l)
		return len(lines) - 1
	}
	last := add(stepLine{of: "callbacks", arm: "no plugin", base: -1})
	for _, c := range []struct {
		name string
		more []string
	}{
		{"a plugin without any", nil},
		{"context_create, delete", []string{"proxy_on_context_create", "proxy_on_delete"}},
		{"request_headers", []string{"proxy_on_request_headers"}},
		{"response_headers", []string{"proxy_on_response_headers"}},
		{"log", []string{"proxy_on_log"}},
	} {
		kept = append(kept[:len(kept):len(kept)], c.more...)
		last = add(stepLine{of: "callbacks", arm: c.name, keep: kept, base: last})
	}
	all := last
	host, hosts := replicas[0], strings.Join(replicas[:3], ",")
	for _, c := range []struct {
		name   string
		config map[string]any
	}{
		{"get a header", map[string]any{"do": "header"}},
		{"get all headers", map[string]any{"do": "pairs"}},
		{"clock", map[string]any{"do": "clock"}},
		{"get shared data, 1 KB", map[string]any{"do": "shared", "size": 1 << 10}},
		{"get shared data, 8 KB", map[string]any{"do": "shared", "size": 8 << 10}},
		{"set shared data, 1 KB", map[string]any{"do": "set_shared", "size": 1 << 10}},
		{"get a property", map[string]any{"do": "property"}},
		{"replace a header", map[string]any{"do": "replace", "value": host}},
		{"set a property", map[string]any{"do": "set_property", "value": host}},
		{"get a header of the answer", map[string]any{"do": "header", "response": 1}},
		{"get all headers of the answer", map[string]any{"do": "pairs", "response": 1}},
	} {
		add(stepLine{of: "one call", arm: c.name, keep: kept, config: c.config, times: manyCalls, base: all})
	}
	for _, routes := range []int{1, 200} {
		of, base := "carrier, 1 route", all
		if routes > 1 {
			of = fmt.Sprintf("carrier, %d routes", routes)
			base = add(stepLine{of: of, arm: "none", keep: kept, routes: routes, base: -1})
		}
		add(stepLine{of: of, arm: "header, one host", keep: kept, config: map[string]any{"do": "replace", "value": host}, times: 1, routes: routes, base: base})
		add(stepLine{of: of, arm: "header, three hosts", keep: kept, config: map[string]any{"do": "replace", "value": hosts}, times: 1, routes: routes, base: base})
		add(stepLine{of: of, arm: "property, three hosts", keep: kept, config: map[string]any{"do": "set_property", "value": hosts}, times: 1, routes: routes, state: true, base: base})
	}
	return lines
}

func runSteps(ctx context.Context, b *bench) ([]row, error) {
	replicas := b.load.replicas[:3]
	lines := stepLines(replicas)
	arms, err := b.startLines(ctx, lines, replicas)
	if err != nil {
		return nil, err
	}
	var subjects []subject
	for _, a := range arms {
		// V8 has compiled the code for good after some thousand calls.
		if err := b.open(a, 3000); err != nil {
			return nil, err
		}
		subjects = append(subjects, subject{arm: a, order: b.turns()})
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, l := range lines {
		if l.base < 0 {
			rows = append(rows, newRow(l.of, l.arm, "CPU", "us", all[i].of(cpuOf)))
			continue
		}
		alone := all[i].added(all[l.base])
		for j := range alone {
			alone[j] /= float64(max(1, l.times))
		}
		rows = append(rows, newRow(l.of, l.arm, "CPU", "us", all[i].of(cpuOf)),
			newRow(l.of, l.arm, "this alone", "us", alone),
			newRow(l.of, l.arm, "this alone, of a bare turn", times, combine(alone, all[0].of(cpuOf), over)))
	}
	return rows, nil
}

// startLines starts one Envoy with all listeners and returns an arm for each.
func (b *bench) startLines(ctx context.Context, lines []stepLine, replicas []string) ([]*arm, error) {
	first, err := envoytest.FreePort()
	if err != nil {
		return nil, err
	}
	text, err := b.text.Before(replicas, first)
	if err != nil {
		return nil, err
	}
	var ports []int
	var edits []func(envoytest.Bootstrap) (envoytest.Bootstrap, error)
	modules := map[int]string{} // by how many callbacks are kept: each line keeps those of the lines before
	for _, l := range lines {
		if n := len(l.keep); n > 0 && modules[n] == "" {
			modules[n] = b.file("steps.wasm")
			if err := keepCallbacks(b.callbacks, modules[n], l.keep); err != nil {
				return nil, err
			}
		}
		port, err := envoytest.FreePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
		edits = append(edits, func(text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
			return l.listener(text, first, port, modules[len(l.keep)])
		})
	}
	if text, err = text.Listeners(edits...); err != nil {
		return nil, err
	}
	a, err := b.startText(ctx, "steps", text, 1, "")
	if err == nil && b.Pin {
		err = a.pin(gatewayCPU)
	}
	if err != nil {
		return nil, err
	}
	var arms []*arm
	for i, port := range ports {
		arms = append(arms, &arm{name: lines[i].of + ", " + lines[i].arm, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), envoy: a.envoy})
	}
	return arms, nil
}

// listener makes the line's listener of the file's.
func (l stepLine) listener(text envoytest.Bootstrap, from, to int, wasm string) (envoytest.Bootstrap, error) {
	text, err := text.Port(from, to)
	switch {
	case err != nil:
	case l.keep == nil:
		text, err = text.WithoutFilter("pinwheel")
	default:
		if text, err = text.Wasm(wasm); err == nil {
			text, err = text.Plugin(func(c map[string]any) {
				clear(c)
				c["times"] = l.times
				for k, v := range l.config {
					c[k] = v
				}
			})
		}
	}
	if err == nil && l.state {
		text, err = before(text, "              include_attempt_count_in_response: true\n", filterState)
	}
	if err == nil && l.routes > 1 {
		table := "              routes:\n"
		more := ""
		for i := range l.routes - 1 {
			more += fmt.Sprintf("              - {match: {prefix: /team-%d/v1/}, route: {cluster: vllm}}\n", i)
		}
		if text, err = before(text, table+"              - match: {prefix: /}\n", table+more); err == nil {
			text = envoytest.Bootstrap(strings.Replace(string(text), more+table, more, 1))
		}
	}
	return text, err
}

// before inserts lines before others that must stand there once.
func before(text envoytest.Bootstrap, line, more string) (envoytest.Bootstrap, error) {
	if n := strings.Count(string(text), line); n != 1 {
		return "", fmt.Errorf("%w: %d times %q, want once", envoytest.ErrBootstrap, n, line)
	}
	return envoytest.Bootstrap(strings.Replace(string(text), line, more+line, 1)), nil
}
