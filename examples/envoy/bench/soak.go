package main

import (
	"encoding/json"
	"errors"
)

// soakFile is the report of examples/envoy/soak in results/: `make soak SOAK_JSON=` and its path replaces it.
const soakFile = "soak.json"

// soak is an experiment of another program, which takes hours.
var soak = experiment{
	name:  "soak",
	title: "Soak",
	about: "Millions of turns while replicas die and come back, configurations change, operators drain, and workers lose their " +
		"plugin ([examples/envoy/soak](../examples/envoy/soak/main.go)). A violation is a wrong answer, a session that moved without a " +
		"reason, or a count that is not exact at the end. Growth is that of the second half, for a million requests.",
}

// soakResult makes a result of the soak's report.
func soakResult(text []byte) (result, error) {
	var report struct {
		Envoy       string  `json:"envoy"`
		Wasm        string  `json:"wasm_sha256"`
		Workers     int     `json:"workers"`
		Connections int     `json:"connections"`
		Requests    float64 `json:"requests"`
		Seconds     float64 `json:"load_s"`
		Violations  float64 `json:"violations"`
		Load        struct {
			Sessions float64 `json:"sessions_begun"`
		} `json:"load"`
		Events map[string]int `json:"events"`
		Memory struct {
			RSS struct {
				Last  float64 `json:"last_bytes"`
				Slope float64 `json:"slope_bytes_per_million_requests"`
			} `json:"rss"`
		} `json:"memory"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return result{}, err
	}
	if report.Requests == 0 {
		return result{}, errors.New("not a soak's report")
	}
	events := 0
	for _, n := range report.Events {
		events += n
	}
	r := result{Experiment: soak.name, Machine: machine{Envoy: report.Envoy}, Elapsed: report.Seconds}
	r.Settings.Connections = report.Connections
	for _, f := range []struct {
		figure, unit string
		value        float64
	}{
		{"requests", "", report.Requests}, {"sessions", "", report.Load.Sessions}, {"events", "", float64(events)}, {"violations", "", report.Violations},
		{"memory at the end", "MB", report.Memory.RSS.Last / 1e6}, {"its growth", "MB", report.Memory.RSS.Slope / 1e6},
	} {
		r.Rows = append(r.Rows, newRow("", withPinwheel, f.figure, f.unit, []float64{f.value}))
	}
	return r, nil
}
