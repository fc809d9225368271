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

// printReport writes the report as aligned columns.
func printReport(w io.Writer, path string, r *hostsim.Report) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	abi := r.ABI
	if abi == "" {
		abi = "none: no export proxy_abi_version_*"
	}
	fmt.Fprintf(t, "file\t%s\nsize\t%d bytes\nabi\t%s\n", path, r.Size, abi)
	fmt.Fprintf(t, "memory\tfrom %d bytes", r.MemoryMin)
	if r.MemoryMax > 0 {
		fmt.Fprintf(t, " to %d", r.MemoryMax)
	}
	fmt.Fprintf(t, "\n\n%d imports\n", len(r.Imports))
	for _, im := range r.Imports {
		fmt.Fprintf(t, "  %s.%s\t%s\n", im.Module, im.Name, im.Signature)
	}
	fmt.Fprintf(t, "\n%d exports\n", len(r.Exports))
	for _, e := range r.Exports {
		note := "\tnot called by a gateway"
		if e.Callback {
			note = ""
		}
		fmt.Fprintf(t, "  %s\t%s%s\n", e.Name, e.Signature, note)
	}
	fmt.Fprint(t, "\nprofiles\n")
	for _, v := range r.Verdicts {
		state := "loads"
		if !v.Loads {
			state = "refuses it because of " + strings.Join(v.Missing, "; ")
		}
		fmt.Fprintf(t, "  %s\t%s\n", v.Profile, state)
	}
	return t.Flush()
}
