package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// result is one experiment's outcome as it is kept in results/NAME.json. Names and units of the JSON are stable.
type result struct {
	Experiment string   `json:"experiment"`
	Date       string   `json:"date"` // UTC, of the beginning
	Command    string   `json:"command"`
	Machine    machine  `json:"machine"`
	Modules    []module `json:"modules"`
	Settings   settings `json:"settings"`
	Elapsed    float64  `json:"elapsed_s"`
	// Busy is the machine's load average of the minute before: how many others wanted its CPUs. An earlier experiment
	// of the same run counts, too.
	Busy float64 `json:"load_before"`
	Rows []row   `json:"rows"`
}

// machine is where it ran.
type machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Envoy  string `json:"envoy"`
}

// module is what ran in Envoy.
type module struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// row is one figure. Case, arm and figure name it within an experiment.
type row struct {
	Case   string `json:"case,omitempty"`
	Arm    string `json:"arm,omitempty"`
	Figure string `json:"figure"`
	// Unit is times for a ratio, which later runs are compared by; else us, ms, s, /s, MiB, B or nothing for a number.
	Unit   string  `json:"unit,omitempty"`
	Median float64 `json:"median"`
	// Q1 and Q3 are the quartiles of the rounds, both the median where there was one value only.
	Q1 float64 `json:"q1"`
	Q3 float64 `json:"q3"`
	N  int     `json:"n"` // values
}

// times is the unit of ratios.
const times = "times"

// newRow sums up the values of the rounds, at least one.
func newRow(of, arm, figure, unit string, values []float64) row {
	v := slices.Clone(values)
	slices.Sort(v)
	return row{of, arm, figure, unit, quantile(v, 0.5), quantile(v, 0.25), quantile(v, 0.75), len(v)}
}

// quantile of sorted values, between neighbours in proportion. Four significant digits are kept: more say nothing, and
// make results hard to read.
func quantile(v []float64, q float64) float64 {
	at := q * float64(len(v)-1)
	i := int(at)
	x := v[i]
	if i+1 < len(v) {
		x += (v[i+1] - v[i]) * (at - float64(i))
	}
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// median of a non-empty list.
func median(values []float64) float64 { return newRow("", "", "", "", values).Median }

// name identifies a row within its experiment, for people.
func (r row) name() string {
	var parts []string
	for _, p := range []string{r.Case, r.Arm, r.Figure} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

func (r row) key() [3]string { return [3]string{r.Case, r.Arm, r.Figure} }

// find returns the row of that name.
func (r result) find(key [3]string) (row, bool) {
	i := slices.IndexFunc(r.Rows, func(w row) bool { return w.key() == key })
	if i < 0 {
		return row{}, false
	}
	return r.Rows[i], true
}

// conditions is a line on how it was measured.
func (r result) conditions() string {
	s := r.Settings
	how := fmt.Sprintf("%d connections, %d sessions, %d rounds of %v", s.Connections, s.Sessions, s.Rounds, s.Duration)
	for _, e := range experiments() {
		if e.name == r.Experiment && e.how != nil {
			how = e.how(s)
		}
	}
	text := fmt.Sprintf("Envoy %s, %s", r.Machine.Envoy, how)
	if !s.Pin {
		text += "; gateway and load shared CPUs"
	}
	return text + "; medians [quartiles of the rounds]"
}

// folder is where results are kept.
func folder(root string) string { return filepath.Join(root, "examples", "envoy", "bench", "results") }

// keep writes the result where the page is made from.
func (r result) keep(root string) error {
	return writeJSON(filepath.Join(folder(root), r.Experiment+".json"), nil, r)
}

// readResults reads what is kept, by experiment. Nothing at all is no error.
func readResults(root string) (map[string]result, error) {
	files, err := filepath.Glob(filepath.Join(folder(root), "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]result{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		if filepath.Base(f) == soakFile {
			r, err := soakResult(text)
			if err != nil {
				return nil, fmt.Errorf("bench: %s: %w", f, err)
			}
			all[r.Experiment] = r
			continue
		}
		var r result
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", f, err)
		}
		if want := strings.TrimSuffix(filepath.Base(f), ".json"); r.Experiment != want {
			return nil, fmt.Errorf("bench: %s is of %q", f, r.Experiment)
		}
		all[r.Experiment] = r
	}
	return all, nil
}

func thisMachine(envoy string) (machine, error) {
	version, err := envoyVersion(envoy)
	if err != nil {
		return machine{}, err
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return machine{}, fmt.Errorf("bench: %w; the benchmark needs Linux", err)
	}
	return machine{cpuModel(), runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version(), version}, nil
}

// cpuModel is the processor's name, or the architecture where Linux does not tell it.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// loadAverage is that of the last minute, 0 where Linux does not tell it.
func loadAverage() (load float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &load)
	return load
}

func identify(name, path string) (module, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return module{}, err
	}
	sum := sha256.Sum256(text)
	return module{name, int64(len(text)), hex.EncodeToString(sum[:])}, nil
}
