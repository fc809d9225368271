package main

import (
	"context"
	"fmt"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Further arms.
const (
	withPicker = "ext_proc"    // a picker in a process of its own, asked by Envoy
	withRouter = "vllm-router" // a router in a process of its own, behind Envoy
)

var peers = experiment{
	name:  "peers",
	title: "The same decision elsewhere",
	about: "Turns of pinned sessions, POST with 2 KB as an OpenAI SDK sends them, over 16 connections and over one. `ext_proc` is Envoy " +
		"that asks [a picker](../examples/envoy/bench/extproc) in a process of its own, over a Unix socket, with the least that the " +
		"protocol allows: one message of one header and one answer for each request. `vllm-router` is Envoy without anything to " +
		"decide in front of vllm-router " +
		"0.1.17 with `sticky_least_loaded`. CPU is that of all processes of a gateway, which share one CPU; *not held* is the same " +
		"where gateway and load run on whatever CPU they like. *Added* is CPU beyond `bare`, which chooses by load and keeps no " +
		"session, in the same round. Latencies of one process and of two compare only while nobody else wants the CPUs: a scheduler " +
		"shares a busy CPU by threads, and gives a gateway of two processes twice as much of it.",
	run: runPeers,
}

func runPeers(ctx context.Context, b *bench) ([]row, error) {
	var rows []row
	if b.Pin {
		held, err := b.runPeers(ctx, false)
		if err != nil {
			return nil, err
		}
		b.stop()
		if err := b.newLoad(false); err != nil {
			return nil, err
		}
		rows = held
	}
	free, err := b.runPeers(ctx, true)
	if err != nil {
		return nil, err
	}
	if b.stop(); b.Pin {
		err = b.newLoad(true)
	}
	return append(rows, free...), err
}

func (b *bench) runPeers(ctx context.Context, free bool) ([]row, error) {
	var arms []*arm
	for _, start := range []func(context.Context, bool) (*arm, error){b.startBare, b.startPinwheel, b.startWithPicker, b.startWithRouter} {
		a, err := start(ctx, free)
		if err != nil {
			return nil, err
		}
		arms = append(arms, a)
	}
	turn := b.turns()
	turn.Body, turn.SDK = 2048, true
	connections := []int{b.Connections, 1}
	var subjects []subject
	for _, n := range connections {
		for _, a := range arms {
			o := turn
			o.Connections = n
			subjects = append(subjects, subject{arm: a, order: o})
		}
	}
	for _, a := range arms {
		first := turn
		first.Addr, first.Requests = a.addr, b.Sessions
		if _, err := b.load.run(first); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", a.name, err, a.logs())
		}
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	const bareArm, pinwheelArm, pickerArm, routerArm = 0, 1, 2, 3
	var rows []row
	for i, n := range connections {
		of := fmt.Sprintf("%d connections", n)
		if n == 1 {
			of = "1 connection"
		}
		if free && b.Pin {
			of += ", not held"
		}
		s := all[i*len(arms):][:len(arms)]
		for k, a := range arms {
			rows = append(rows, newRow(of, a.name, "CPU", "us", s[k].of(cpuOf)))
			if k == bareArm {
				continue
			}
			rows = append(rows, newRow(of, a.name, "added", "us", s[k].added(s[bareArm])))
			if k == pinwheelArm {
				rows = append(rows,
					newRow(of, a.name, "CPU, of vllm-router", times, combine(s[k].of(cpuOf), s[routerArm].of(cpuOf), over)),
					newRow(of, a.name, "p50, of vllm-router", times, combine(s[k].of(p50Of), s[routerArm].of(p50Of), over)),
					newRow(of, a.name, "p99, of vllm-router", times, combine(s[k].of(p99Of), s[routerArm].of(p99Of), over)))
			} else {
				rows = append(rows, newRow(of, a.name, "added, of pinwheel", times,
					combine(s[k].added(s[bareArm]), s[pinwheelArm].added(s[bareArm]), over)))
			}
		}
		for k, a := range arms {
			rows = append(rows, newRow(of, a.name, "p50", "us", s[k].of(p50Of)), newRow(of, a.name, "p99", "us", s[k].of(p99Of)))
		}
	}
	return rows, nil
}

func (b *bench) startBare(ctx context.Context, free bool) (*arm, error) {
	g := b.plain(bare)
	g.free = free
	return b.start(ctx, g)
}

func (b *bench) startPinwheel(ctx context.Context, free bool) (*arm, error) {
	g := b.plain(withPinwheel)
	g.free = free
	return b.start(ctx, g)
}

func (b *bench) startWithPicker(ctx context.Context, free bool) (*arm, error) {
	p, err := startPicker(ctx, b.root, b.dir, b.load.replicas[:3])
	if err != nil {
		return nil, err
	}
	return b.startBeside(ctx, p, gateway{name: withPicker, free: free, edit: func(text envoytest.Bootstrap) (envoytest.Bootstrap, error) {
		return extProcBootstrap(text, p.addr)
	}})
}

func (b *bench) startWithRouter(ctx context.Context, free bool) (*arm, error) {
	p, err := startRouter(ctx, b.load.replicas[:3])
	if err != nil {
		return nil, err
	}
	return b.startBeside(ctx, p, gateway{name: withRouter, free: free, replicas: []string{p.addr}, edit: routerBootstrap})
}

// startBeside makes one arm of a process that runs and a gateway.
func (b *bench) startBeside(ctx context.Context, p process, g gateway) (*arm, error) {
	a, err := b.start(ctx, g)
	if err == nil {
		a.also = append(a.also, p.pid)
		a.after = append(a.after, p.stop)
		if b.Pin && !g.free {
			err = a.pin(gatewayCPU)
		}
		return a, err
	}
	p.stop()
	return nil, err
}
