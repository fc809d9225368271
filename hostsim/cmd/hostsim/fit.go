package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

type fitFlags struct {
	engine, out string
	hold        []string
	within      float64
}

func newFit() *cobra.Command {
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit LOG --engine ENGINE.json",
		Short: "Fit the simulated model server to a log of a real one",
		Long: `fit reads what a real vLLM did, request by request, and looks for the numbers with which the simulated server is most
like it: a step's fixed time, and what shares of the GPU's FLOPS and bandwidth are reached. It prints measured and
modelled latencies, and beside them how far the model is off on the second half of the requests when it was fitted to the
first alone (of 16 requests or more).

LOG is the result file of vllm bench serve --save-result --save-detailed, or JSON lines with input_toks, output_toks,
arrival_time, first_token_ts and last_token_ts (seconds). ENGINE.json says what the GPU and the model are, and how the
server was started; docs/replay-model.md explains it.`,
		Example: `  hostsim fit bench.json --engine h100.json
  hostsim fit bench.json --engine h100.json --out fitted.json
  hostsim fit other.json --engine fitted.json --hold base,mfu,weight_read,kv_read --within 5`,
		Args:              exactArgs(1, "one log"),
		ValidArgsFunction: completeOneFile("json", "jsonl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return fit(args[0], f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringVar(&f.engine, "engine", "", "file with the server: GPU, model, pool, settings (required)")
	cmd.Flags().StringVar(&f.out, "out", "", "write the fitted server to this file")
	cmd.Flags().StringSliceVar(&f.hold, "hold", nil, "numbers that stay as the file has them: base, mfu, weight_read, kv_read, link")
	cmd.Flags().Float64Var(&f.within, "within", 0, "exit 1 when a TPOT or the mean E2E is off by more percent than this; 0 accepts all")
	return cmd
}

func fit(path string, f fitFlags, stdout, stderr io.Writer) error {
	if f.engine == "" {
		return usagef("fit wants --engine FILE, which says what the server is")
	}
	if f.within < 0 || math.IsNaN(f.within) {
		return usagef("--within is %v; it must be 0 or more", f.within)
	}
	engine, err := readFrom(f.engine, replica.ReadEngine)
	if err != nil {
		return err
	}
	log, err := readFrom(path, replica.ReadEngineLog)
	if err != nil {
		return err
	}
	fitted, err := replica.FitRoofline(engine, log, f.hold, nil)
	if err != nil {
		return fitError(path, err)
	}
	all, err := comparisons(fitted, log, 0)
	if err != nil {
		return err
	}
	heldOut, err := f.blind(engine, path, log)
	if err != nil {
		return err
	}
	model := fitted.Step.(*replica.Roofline)
	printFit(stdout, len(log), model, all, heldOut)
	f.warn(stderr, len(log), engine.Step.(*replica.Roofline), model)
	if f.out != "" {
		if err := writeEngine(f.out, fitted, fmt.Sprintf("fitted to %d requests", len(log))); err != nil {
			return err
		}
		fmt.Fprintf(stderr, "wrote %s; hostsim replay --engine %s uses it\n", f.out, f.out)
	}
	return judge(all, f.within)
}

// fewestFitted is the least number of requests to fit five numbers to, and to try them on, for what is held out to mean
// something.
const fewestFitted = 8

// blind fits to the first half of the log and compares the other; nil where a half is too short to tell anything.
func (f *fitFlags) blind(engine replica.EngineConfig, path string, log []replica.EngineRecord) ([]comparison, error) {
	half := len(log) / 2
	if half < fewestFitted {
		return nil, nil
	}
	fitted, err := replica.FitRoofline(engine, log, f.hold, func(i int) bool { return i < half })
	if err != nil {
		return nil, fitError(path, err)
	}
	return comparisons(fitted, log, half)
}

// readFrom opens a file and reads it; errors name it.
func readFrom[T any](path string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := os.Open(path)
	if err != nil {
		return none, err
	}
	defer file.Close()
	v, err := read(file)
	if err != nil {
		return none, inFile(path, err)
	}
	return v, nil
}

// inFile is an error of the library with the file's name in place of the library's.
func inFile(path string, err error) error {
	return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "replica: "))
}

// fitError tells a wrong --hold from a log that cannot be played.
func fitError(path string, err error) error {
	if errors.Is(err, replica.ErrFit) {
		return usageError{errors.New(strings.TrimPrefix(err.Error(), "replica: "))}
	}
	return inFile(path, err)
}

func writeEngine(path string, c replica.EngineConfig, about string) error {
	var text bytes.Buffer
	if err := replica.WriteEngine(&text, c, about); err != nil {
		return err
	}
	return writeWhole(path, writeAll(text.Bytes()))
}

// comparison is one figure as measured and as modelled.
type comparison struct {
	name            string
	measured, model time.Duration
	// held says that --within is about it.
	held bool
}

// off is the model's relative error in percent.
func (c comparison) off() float64 {
	if c.measured == 0 {
		return 0
	}
	return 100 * (float64(c.model)/float64(c.measured) - 1)
}

// comparisons plays the log and compares the requests from the given one on.
func comparisons(c replica.EngineConfig, log []replica.EngineRecord, from int) ([]comparison, error) {
	played, err := replica.PlayLog(c, log)
	if err != nil {
		return nil, err
	}
	ttft, tpot, e2e := replica.LogLatency(log[from:])
	ttftModel, tpotModel, e2eModel := replica.LogLatency(played[from:])
	var all []comparison
	for _, l := range []struct {
		name            string
		measured, model replica.Latency
		held            [3]bool
	}{
		{"TTFT", ttft, ttftModel, [3]bool{}},
		{"TPOT", tpot, tpotModel, [3]bool{true, true, true}},
		{"E2E", e2e, e2eModel, [3]bool{true, false, false}},
	} {
		all = append(all,
			comparison{l.name + " mean", l.measured.Mean, l.model.Mean, l.held[0]},
			comparison{l.name + " p50", l.measured.P50, l.model.P50, l.held[1]},
			comparison{l.name + " p99", l.measured.P99, l.model.P99, l.held[2]})
	}
	return all, nil
}

func printFit(w io.Writer, requests int, m *replica.Roofline, all, heldOut []comparison) {
	fmt.Fprintf(w, "%d requests: base %v, mfu %.3f, weight_read %.3f, kv_read %.3f", requests, m.Base.Round(10*time.Microsecond), m.MFU, m.WeightRead, m.KVRead)
	if m.GPUs > 1 {
		fmt.Fprintf(w, ", link %.3g", m.GPU.Link)
	}
	fmt.Fprintln(w)
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(columns, "\tmeasured\tmodel\toff\t")
	if heldOut != nil {
		fmt.Fprint(columns, "held out\t")
	}
	fmt.Fprintln(columns)
	for i, c := range all {
		fmt.Fprintf(columns, "%s\t%.4gs\t%.4gs\t%+.1f%%\t", c.name, c.measured.Seconds(), c.model.Seconds(), c.off())
		if heldOut != nil {
			fmt.Fprintf(columns, "%+.1f%%\t", heldOut[i].off())
		}
		fmt.Fprintln(columns)
	}
	columns.Flush()
}

// judge reports the figures that are further off than within percent; zero accepts all.
func judge(all []comparison, within float64) error {
	var far []string
	for _, c := range all {
		if c.held && within > 0 && math.Abs(c.off()) > within {
			far = append(far, fmt.Sprintf("%s %+.1f%%", c.name, c.off()))
		}
	}
	if far == nil {
		return nil
	}
	return fmt.Errorf("not within %v%%: %s", within, strings.Join(far, ", "))
}
