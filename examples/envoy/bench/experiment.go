package main

import "context"

// experiment is one question to a real Envoy.
type experiment struct {
	name  string // of -only, and of the file under results/
	title string // a heading
	about string // what is compared and how, for the page: Markdown, a paragraph or more
	// how says how often and by what load it was measured, where that is not as usual. May be nil.
	how func(settings) string
	// run measures. It starts arms by bench.start and stops them itself, by bench.stop.
	run func(ctx context.Context, b *bench) ([]row, error)
}

// experiments are all that there are, in the page's order.
func experiments() []experiment {
	return []experiment{sticky, steps, replicas, sessions, workers, start, body, peers}
}
