package main

// goal is a bound on one figure.
type goal struct {
	text       string // what is to hold, with the bound
	experiment string
	key        [3]string // case, arm and figure of the row
	bound      float64
	least      bool // the bound is the least allowed, not the most
}

// goals are all that the page shows, met or not.
func goals() []goal {
	return []goal{
		{"A sticky turn adds at most 1.3 times what the floor adds", "sticky", [3]string{"GET", withPinwheel, "added, of floor"}, 1.3, false},
		{"A first turn adds at most 3 times what a sticky turn adds, 64 replicas", "replicas",
			[3]string{"64 replicas", placement, "added, of sticky"}, 3, false},
		{"A sticky turn adds at 1,024 replicas at most 1.3 times what it adds at 4", "replicas",
			[3]string{"1,024 replicas", stickyTurns, "added, of 4 replicas"}, 1.3, false},
		{"A sticky turn adds at 1,000,000 sessions at most 1.3 times what it adds at 1,000", "sessions",
			[3]string{"1,000,000 sessions", withPinwheel, "added, of the fewest sessions"}, 1.3, false},
		{"A session takes at most 48 bytes of Envoy's memory, of 1,000,000", "sessions",
			[3]string{"1,000,000 sessions", withPinwheel, "heap for a session"}, 48, false},
		{"A further worker takes at most 12 MB more than with empty official Go", "start",
			[3]string{"", withPinwheel, "further worker, beyond empty"}, 12, false},
		{"Start-up takes at most twice that of empty official Go", "start", [3]string{"", withPinwheel, "ready, of empty"}, 2, false},
		{"The first request takes at most 3 times the median of the next", "start", [3]string{"", withPinwheel, "first, of the next"}, 3, false},
		{"A soak of 10,000,000 requests", "soak", [3]string{"", withPinwheel, "requests"}, 10_000_000, true},
		{"No violation in it", "soak", [3]string{"", withPinwheel, "violations"}, 0, false},
		{"Envoy with Pinwheel needs at most 0.65 times the CPU of Envoy before vllm-router", "peers",
			[3]string{"16 connections", withPinwheel, "CPU, of vllm-router"}, 0.65, false},
		{"Its p99 is at most that of Envoy before vllm-router", "peers", [3]string{"16 connections", withPinwheel, "p99, of vllm-router"}, 1, false},
		{"A picker behind ext_proc adds at least 5 times what Pinwheel adds", "peers",
			[3]string{"16 connections", withPicker, "added, of pinwheel"}, 5, true},
	}
}

// verdict says whether the goal is met by the row, which ok says is there: by its median.
func (g goal) verdict(r row, ok bool) string {
	switch {
	case !ok:
		return "not measured"
	case g.least && r.Median >= g.bound || !g.least && r.Median <= g.bound:
		return "met"
	}
	return "missed"
}

// figure is the row as the page's list of goals shows it.
func (g goal) figure(r row, ok bool) string {
	switch {
	case !ok:
		return ""
	case r.Unit == "" || r.Unit == times:
		return r.text()
	}
	return r.text() + " " + r.Unit
}
