package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// sample is one look at the gateway. Sizes are in bytes.
type sample struct {
	Requests uint64  `json:"requests"` // answered so far
	ElapsedS float64 `json:"elapsed_s"`
	// RSS is the process's resident set.
	RSS int64 `json:"rss_bytes"`
	// Allocated and Heap are what /memory of the admin interface says: in use, and taken from the system for that. What V8
	// holds is in neither.
	Allocated int64 `json:"allocated_bytes"`
	Heap      int64 `json:"heap_bytes"`
	// Wasm adds up the linear memories of all VMs, WasmMemories counts them. 0 where /proc does not tell.
	Wasm         int64 `json:"wasm_bytes"`
	WasmMemories int   `json:"wasm_memories"`
	// VMs is Envoy's own count of them.
	VMs uint64 `json:"vms"`
	// Sessions are the gauges of open sessions, added up.
	Sessions uint64 `json:"open_sessions"`
}

// series keeps samples that are evenly apart: full, it drops every other one and takes half as many from then on.
type series struct {
	samples []sample
	stride  int // of offered samples one in so many is kept
	offered int
}

const maxSamples = 200

func (s *series) add(x sample) {
	s.stride = max(s.stride, 1)
	if s.offered++; (s.offered-1)%s.stride != 0 {
		return
	}
	if len(s.samples) == maxSamples {
		for i := range maxSamples / 2 {
			s.samples[i] = s.samples[2*i]
		}
		s.samples = s.samples[:maxSamples/2]
		s.stride *= 2
	}
	s.samples = append(s.samples, x)
}

// trend says how flat one size stayed.
type trend struct {
	// First is the size when the warm-up was over, Last that at the end, in bytes.
	First int64 `json:"first_bytes"`
	Last  int64 `json:"last_bytes"`
	// MaxOverMin is the greatest over the least since the warm-up.
	MaxOverMin float64 `json:"max_over_min"`
	// Slope is that of the straight line with the least squares through the second half of the run, in bytes for a
	// million requests.
	Slope float64 `json:"slope_bytes_per_million_requests"`
}

// warmUp is the share of all requests after which sizes count.
const warmUp = 0.1

// trendOf returns the zero trend of a run that was too short for one.
func trendOf(samples []sample, size func(sample) int64) (t trend) {
	if len(samples) == 0 {
		return t
	}
	last := samples[len(samples)-1]
	var least, most int64
	var n, sumX, sumY, sumXX, sumXY float64
	for _, s := range samples {
		if float64(s.Requests) < warmUp*float64(last.Requests) {
			continue
		}
		y := size(s)
		if t.First == 0 {
			t.First, least = y, y
		}
		t.Last, least, most = y, min(least, y), max(most, y)
		if 2*s.Requests < last.Requests {
			continue
		}
		x := float64(s.Requests) / 1e6
		n++
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+float64(y), sumXX+x*x, sumXY+x*float64(y)
	}
	if least > 0 {
		t.MaxOverMin = float64(most) / float64(least)
	}
	if d := n*sumXX - sumX*sumX; n > 1 && d > 0 {
		t.Slope = (n*sumXY - sumX*sumY) / d
	}
	return t
}

// look takes a sample of a running Envoy, but for what only the load knows.
func look(ctx context.Context, e *envoytest.Envoy) (s sample, err error) {
	if s.RSS, err = envoytest.ResidentBytes(e.Pid()); err != nil {
		return s, err
	}
	text, err := e.Admin.Get(ctx, "/memory")
	if err != nil {
		return s, err
	}
	var page struct {
		Allocated int64 `json:"allocated,string"`
		Heap      int64 `json:"heap_size,string"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		return s, fmt.Errorf("soak: admin /memory: %w", err)
	}
	s.Allocated, s.Heap = page.Allocated, page.Heap
	stats, err := e.Admin.Stats(ctx, `^wasm\.envoy\.wasm\.runtime\.v8\.active$|^wasmcustom\.pinwheel_sessions\.`)
	if err != nil {
		return s, err
	}
	for name, n := range stats {
		if strings.HasPrefix(name, "wasmcustom.") {
			s.Sessions += n
		} else {
			s.VMs += n
		}
	}
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", e.Pid()))
	if err != nil {
		return s, nil
	}
	defer maps.Close()
	s.Wasm, s.WasmMemories = linearMemories(bufio.NewScanner(maps))
	return s, nil
}

// linearMemories finds those of V8's WebAssembly in /proc/PID/maps: readable and writable, at the bottom of a reservation of
// 4 GiB or more that begins there and of which nobody may touch the rest.
func linearMemories(lines *bufio.Scanner) (bytes int64, count int) {
	const reserved = 4 << 30
	var begin, end uint64 // the last writable mapping
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		low, err := strconv.ParseUint(from, 16, 64)
		high, err2 := strconv.ParseUint(to, 16, 64)
		if err != nil || err2 != nil {
			continue
		}
		switch {
		case fields[1] == "rw-p" && fields[4] == "0" && low == end && end != 0:
			end = high // the kernel shows neighbours apart at times
		case fields[1] == "rw-p" && fields[4] == "0":
			begin, end = low, high
		case fields[1] == "---p" && low == end && high-begin >= reserved:
			bytes, count = bytes+int64(end-begin), count+1
			begin, end = 0, 0
		default:
			begin, end = 0, 0
		}
	}
	return bytes, count
}
