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
		{"Envoy with Pinwheel needs at most 0.65 times the CPU of Envoy before vllm-router", "peers",
			[3]string{"16 connections", withPinwheel, "CPU, of vllm-router"}, 0.65, false},
		{"Its p99 is below that of Envoy before vllm-router", "peers", [3]string{"16 connections", withPinwheel, "p99, of vllm-router"}, 1, false},
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
