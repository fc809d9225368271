package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// compare prints how the ratios of a run differ from those that are kept. Only ratios: they are of measurements that took
// turns, and so the same on a quiet and on a busy machine, as far as anything is.
func compare(out io.Writer, kept map[string]result, results []result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := false
	for _, now := range results {
		old, ok := kept[now.Experiment]
		if !ok {
			continue
		}
		for _, r := range now.Rows {
			before, ok := old.find(r.key())
			if r.Unit != times || !ok {
				continue
			}
			if !head {
				fmt.Fprintln(w, "ratio\tkept\tnow\tdifference\t")
				head = true
			}
			fmt.Fprintf(w, "%s: %s\t%s\t%s\t%s\t\n", now.Experiment, r.name(), before.text(), r.text(), difference(before, r))
		}
	}
	if !head {
		fmt.Fprintln(w, "No kept results to compare with.")
	}
	w.Flush()
}

// difference is in percent of what was before, or noise: where the quartiles overlap, nothing is known to have changed.
func difference(before, now row) string {
	if now.Q1 <= before.Q3 && before.Q1 <= now.Q3 || before.Median == 0 {
		return "within noise"
	}
	return fmt.Sprintf("%+.0f%%", (now.Median/before.Median-1)*100)
}
