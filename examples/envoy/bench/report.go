package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report is what the benchmark prints. Its JSON names are stable.
type report struct {
	Envoy       string      `json:"envoy"`
	Rounds      int         `json:"rounds"`
	RoundS      float64     `json:"round_s"`
	Connections int         `json:"connections"`
	Sessions    int         `json:"sessions"`
	Pinned      bool        `json:"cpu_pinned"`
	Arms        []armReport `json:"arms"`
	// Ratio is what Pinwheel adds over bare Envoy, divided by what the floor adds.
	Ratio float64 `json:"pinwheel_over_floor"`
}

type armReport struct {
	Name string `json:"name"`
	// CPU microseconds per request: median, least and most of the rounds.
	CPU    float64 `json:"cpu_us"`
	CPUMin float64 `json:"cpu_us_min"`
	CPUMax float64 `json:"cpu_us_max"`
	// Added is the median over rounds of the difference to bare Envoy in the same
	// round, in microseconds.
	Added          float64 `json:"added_us"`
	Rate           float64 `json:"requests_per_s"`
	StartUpS       float64 `json:"start_up_s"`
	WasmBytes      int64   `json:"wasm_bytes"`
	RSS            int64   `json:"rss_bytes"`
	RSSLoaded      int64   `json:"rss_bytes_after_load"`
	RSSNextWorkers int64   `json:"rss_bytes_per_further_worker"`
}

// newReport sums up the arms, bare Envoy, floor and Pinwheel in this order.
func newReport(s settings, arms []*arm, version string) report {
	r := report{Envoy: version, Rounds: s.Rounds, RoundS: s.Duration.Seconds(), Connections: s.Connections, Sessions: s.Sessions, Pinned: s.Pin}
	for _, a := range arms {
		var cpu, added, rate []float64
		for i, m := range a.rounds {
			cpu, rate = append(cpu, m.cpu), append(rate, m.rate)
			added = append(added, m.cpu-arms[0].rounds[i].cpu)
		}
		r.Arms = append(r.Arms, armReport{
			Name: a.name, CPU: median(cpu), CPUMin: slices.Min(cpu), CPUMax: slices.Max(cpu), Added: median(added), Rate: median(rate),
			StartUpS: a.startUp.Seconds(), WasmBytes: a.wasmBytes,
			RSS: a.resident, RSSLoaded: a.residentLoaded, RSSNextWorkers: a.perWorker,
		})
	}
	r.Ratio = r.Arms[2].Added / r.Arms[1].Added
	return r
}

func (r report) print(out io.Writer) error {
	fmt.Fprintf(out, "Envoy %s, one worker, %d connections, %d pinned sessions; medians of %d rounds of %gs, arms interleaved\n\n",
		r.Envoy, r.Connections, r.Sessions, r.Rounds, r.RoundS)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tCPU/request\t(min-max)\tadded\trequests/s\tstart-up\twasm\tRSS\tafter load\tfurther worker\t")
	for _, a := range r.Arms {
		fmt.Fprintf(w, "%s\t%.1f us\t(%.1f-%.1f)\t%+.1f us\t%.0f\t%.2f s\t%s\t%s\t%s\t%s\t\n",
			a.Name, a.CPU, a.CPUMin, a.CPUMax, a.Added, a.Rate, a.StartUpS, mib(a.WasmBytes), mib(a.RSS), mib(a.RSSLoaded), mib(a.RSSNextWorkers))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nPinwheel adds %.2f times what the floor adds.\n", r.Ratio)
	if !r.Pinned {
		fmt.Fprintln(out, "Envoy and the load shared CPUs: use a machine with two or more for figures to keep.")
	}
	return err
}

// median of a non-empty list; of an even number the mean of the middle two.
func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

func mib(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
