// Grafana writes the dashboard beside it, pinwheel.json, to standard output:
//
//	go run . > pinwheel.json
//
// The JSON is what users import; this program is why it is valid: panels, queries and options are Grafana's own types
// (github.com/grafana/grafana-foundation-sdk).
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	text, err := dashboardJSON()
	if err != nil {
		fmt.Fprintln(os.Stderr, "grafana:", err)
		os.Exit(1)
	}
	os.Stdout.Write(text)
}

// dashboardJSON is the dashboard as it is committed. Pure.
func dashboardJSON() ([]byte, error) {
	built, err := board().Build()
	if err != nil {
		return nil, err
	}
	for i, p := range built.Panels { // ids are in links to a panel: they are the same after each import
		if id := uint32(i + 1); p.Panel != nil {
			p.Panel.Id = &id
		} else {
			p.RowPanel.Id = id
		}
	}
	text, err := json.MarshalIndent(built, "", "  ")
	return append(text, '\n'), err
}
