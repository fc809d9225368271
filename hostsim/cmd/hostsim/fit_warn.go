package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// fewRequests is the number of requests below which a fit is called uncertain.
const fewRequests = 50

// atBound is the part of its bound from which on a fitted number counts as there: the search comes close, not to it.
const atBound = .9995

// warn says which of the fitted numbers the log does not fix: those at the upper bound that replica.FitRoofline has for them.
// Those of --hold are not fitted.
func (f *fitFlags) warn(w io.Writer, requests int, given, fitted *replica.Roofline) {
	if requests < fewRequests {
		fmt.Fprintf(w, "%s: with fewer than %d the numbers are uncertain; send more load\n", counted(requests, "request"), fewRequests)
	}
	numbers := []struct {
		name        string
		value, most float64
	}{{"mfu", fitted.MFU, 1}, {"weight_read", fitted.WeightRead, 1}, {"kv_read", fitted.KVRead, 1}}
	if given.GPUs > 1 {
		numbers = append(numbers, struct {
			name        string
			value, most float64
		}{"link", fitted.GPU.Link, max(given.GPU.Bandwidth, 2*given.GPU.Link)})
	}
	for _, n := range numbers {
		if n.value >= atBound*n.most && !slices.Contains(f.hold, n.name) {
			fmt.Fprintf(w, "%s is at its bound: this log says little about it; send more load\n", n.name)
		}
	}
}
