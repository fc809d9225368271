package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func newInspect() *cobra.Command {
	var profile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect FILE.wasm",
		Short: "Say whether a gateway would load a module",
		Long: `inspect reads a module without running it: ABI version, size, memory, imports and exports, and whether each profile's
gateway would load it, with the name of what is missing. It exits 1 when the gateway of --profile would not.`,
		Example: `  hostsim inspect dist/pinwheel.wasm
  hostsim inspect my.wasm --profile envoy-1.36 && echo fine
  hostsim inspect my.wasm --json | jq '.verdicts'`,
		Args:              exactArgs(1, "one file"),
		ValidArgsFunction: completeOneFile("wasm"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(args[0], profile, asJSON, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&profile, "profile", hostsim.Profiles()[0].Name, "gateway whose verdict decides: envoy-1.36, envoy-1.40 or permissive")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// inspection is the JSON form: the report, and the verdict that decides.
type inspection struct {
	File    string `json:"file"`
	Profile string `json:"profile"`
	Loads   bool   `json:"loads"`
	*hostsim.Report
}

func inspect(path, profile string, asJSON bool, stdout io.Writer) error {
	p, err := profileFlag(profile)
	if err != nil {
		return err
	}
	wasm, err := readWasm(path)
	if err != nil {
		return err
	}
	report, err := hostsim.Inspect(wasm)
	if err != nil {
		return notWasm(path, strings.TrimPrefix(err.Error(), hostsim.ErrABI.Error()+": "))
	}
	i := slices.IndexFunc(report.Verdicts, func(v hostsim.Verdict) bool { return v.Profile == p.Name })
	if i < 0 {
		return fmt.Errorf("%s: no verdict for profile %s", path, p.Name)
	}
	verdict := report.Verdicts[i]
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(inspection{path, p.Name, verdict.Loads, report}); err != nil {
			return err
		}
	} else if err := printReport(stdout, path, report); err != nil {
		return err
	}
	if !verdict.Loads {
		return fmt.Errorf("%s would not load %s because of %s", p.Name, path, strings.Join(verdict.Missing, "; "))
	}
	return nil
}

// printReport writes the report as aligned columns, the verdicts last, where a terminal shows them.
func printReport(w io.Writer, path string, r *hostsim.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	abi := r.ABI
	if abi == "" {
		abi = "none: no export proxy_abi_version_*"
	}
	fmt.Fprintf(t, "file\t%s\nsize\t%s\nabi\t%s\nmemory\tfrom %s", path, bytesOf(uint64(r.Size)), abi, bytesOf(r.MemoryMin))
	if r.MemoryMax > 0 {
		fmt.Fprintf(t, " to %s", bytesOf(r.MemoryMax))
	}
	fmt.Fprint(t, "\n\n")
	printImports(t, r)
	fmt.Fprintf(t, "\n%s\n", counted(len(r.Exports), "export"))
	for _, e := range r.Exports {
		note := "\tnot called by a gateway"
		if e.Callback {
			note = ""
		} else if strings.HasPrefix(e.Name, "proxy_abi_version_") {
			note = "\tsays which ABI it is"
		}
		fmt.Fprintf(t, "  %s\t%s%s\n", e.Name, e.Signature, note)
	}
	fmt.Fprint(t, "\nprofiles\n")
	for _, v := range r.Verdicts {
		if v.Loads {
			fmt.Fprintf(t, "  %s\tloads\n", v.Profile)
			continue
		}
		for i, missing := range v.Missing {
			if i == 0 {
				fmt.Fprintf(t, "  %s\trefuses it because of\t%s\n", v.Profile, missing)
			} else {
				fmt.Fprintf(t, "  \t\t%s\n", missing)
			}
		}
	}
	return t.Flush()
}

// printImports lists each import once, with the profiles that it keeps from loading the module.
func printImports(w io.Writer, r *hostsim.Report) {
	seen := map[string]int{}
	for _, im := range r.Imports {
		seen[importLine(im, nil)]++
	}
	fmt.Fprintf(w, "%s\n", counted(len(seen), "import"))
	for _, im := range r.Imports {
		line := importLine(im, nil)
		if seen[line] > 0 {
			seen[line] = 0
			fmt.Fprintln(w, importLine(im, r.Verdicts))
		}
	}
}

func importLine(im hostsim.Import, verdicts []hostsim.Verdict) string {
	name := im.Module + "." + im.Name
	var refusing []string
	for _, v := range verdicts {
		if slices.ContainsFunc(v.Missing, func(m string) bool { return m == name || strings.HasPrefix(m, name+" ") }) {
			refusing = append(refusing, v.Profile)
		}
	}
	line := fmt.Sprintf("  %s\t%s", name, im.Signature)
	if len(refusing) > 0 {
		line += "\tkeeps it out of " + strings.Join(refusing, ", ")
	}
	return line
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// bytesOf writes a size exactly, and large ones also in MiB.
func bytesOf(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d bytes (%.1f MiB)", n, float64(n)/(1<<20))
}
