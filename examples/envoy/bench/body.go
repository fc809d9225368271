package main

import (
	"context"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

var body = experiment{
	name:  "body",
	title: "A session named in the body",
	about: "Turns of pinned sessions whose id stands at the end of a JSON body, with `session.body`: Envoy holds each request until the " +
		"plugin has read it. Beside them the same requests without a plugin.",
	run: runBody,
}

func runBody(ctx context.Context, b *bench) ([]row, error) {
	without, err := b.start(ctx, b.plain(bare))
	if err != nil {
		return nil, err
	}
	g := b.plain(withPinwheel)
	g.plugin = map[string]any{"session": map[string]any{"body": []string{"user"}, "max_sessions": tableFor(b.Sessions)}}
	g.edit = envoytest.Bootstrap.ShowBodies
	with, err := b.start(ctx, g)
	if err != nil {
		return nil, err
	}
	sizes, names := []int{2 << 10, 50 << 10}, []string{"2 KB", "50 KB"} // the plugin reads 64 KB by default
	var subjects []subject
	for i, size := range sizes {
		o := b.turns()
		o.Body, o.InBody, o.SDK = size, true, true
		if i == 0 {
			first := o
			first.Addr, first.Requests = with.addr, b.Sessions
			if _, err := b.load.run(first); err != nil {
				return nil, err
			}
		}
		subjects = append(subjects, subject{arm: without, order: o}, subject{arm: with, order: o})
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	if err := b.onlySticky(ctx, with, b.Sessions); err != nil {
		return nil, err
	}
	var rows []row
	for i, name := range names {
		base, s := all[2*i], all[2*i+1]
		rows = append(rows, newRow(name, bare, "CPU", "us", base.of(cpuOf)), newRow(name, withPinwheel, "CPU", "us", s.of(cpuOf)),
			newRow(name, withPinwheel, "added", "us", s.added(base)),
			newRow(name, withPinwheel, "CPU, of bare", times, combine(s.of(cpuOf), base.of(cpuOf), over)))
	}
	return rows, nil
}
