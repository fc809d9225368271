// Validate sends recorded sessions to a real vLLM and to the simulated one, and says on how many requests they agree:
//
//	go run ./build/vllm/validate [-update] [-campaign NAME,...] [-engine NAME]
//
// The vLLM runs on CPUs with a tiny model, see package engine; it is installed on first use. Its answers are kept in
// testdata, so that tests can hold the simulated engine to them without it; -update writes them anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// folder is where recordings are, from the root of the repository.
const folder = "build/vllm/validate/testdata"

func main() {
	update := flag.Bool("update", false, "write "+folder+" anew")
	only := flag.String("campaign", "", "play only those of these `names`, with commas between: "+strings.Join(campaignNames, ", "))
	one := flag.String("engine", "", "start only the one of that `name`: "+strings.Join(engineNames(), ", "))
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: validate [-update] [-campaign NAME,...] [-engine NAME]\nruns a real vLLM and compares the simulated one with it; from the repository's root")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := checkNames(*only, *one); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := validate(ctx, os.Stdout, *update, *only, *one)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// checkNames finds names of campaigns and of an engine that there are not; empty is all.
func checkNames(only, one string) error {
	if one != "" && !slices.Contains(engineNames(), one) {
		return fmt.Errorf("validate: -engine %q is not known: choose one of %s", one, strings.Join(engineNames(), ", "))
	}
	if only == "" {
		return nil
	}
	for _, name := range strings.Split(only, ",") {
		if !slices.Contains(campaignNames, name) {
			return fmt.Errorf("validate: -campaign %q is not known: choose of %s", name, strings.Join(campaignNames, ", "))
		}
	}
	return nil
}

// validate plays all campaigns, or only one, on all engines. It reports whether all bounds hold.
func validate(ctx context.Context, w io.Writer, update bool, only, one string) (bool, error) {
	sessions, err := trace.Bundled().ReadAll()
	if err != nil {
		return false, err
	}
	e, err := engine.Find(ctx, os.Stderr)
	if err != nil {
		return false, err
	}
	good := true
	header(w)
	for _, s := range engines {
		s.Version = engine.Version
		all := pick(campaigns(s, sessions), only)
		if len(all) == 0 || one != "" && one != s.Name {
			continue
		}
		ok, err := validateEngine(ctx, w, e, s, all, update)
		if err != nil {
			return false, err
		}
		good = good && ok
	}
	return good, nil
}

func validateEngine(ctx context.Context, w io.Writer, e engine.Engine, s settings, all []campaign, update bool) (bool, error) {
	v, err := serve(ctx, e, s)
	if err != nil {
		return false, err
	}
	defer v.stop()
	blocks, err := v.blocks(ctx)
	if err == nil && blocks != s.Blocks {
		err = fmt.Errorf("%w: has %d blocks, not %d", errServer, blocks, s.Blocks)
	}
	if err != nil {
		return false, err
	}
	good := true
	for _, c := range all {
		r, err := validateCampaign(ctx, w, v, s, c, update)
		if err != nil {
			return false, err
		}
		good = good && r.good()
	}
	return good, nil
}

// validateCampaign prints what it returns, and with update keeps the answers.
func validateCampaign(ctx context.Context, w io.Writer, v *server, s settings, c campaign, update bool) (result, error) {
	r := result{campaign: c, kept: &recording{settings: s, Campaign: c.name}}
	var err error
	if !update { // before minutes are spent
		if err = r.kept.read(folder); err == nil {
			err = r.kept.fits(s, c)
		}
		if err != nil {
			return r, fmt.Errorf("%w; -update records anew", err)
		}
	}
	if r.simulated, err = simulate(s, c); err != nil {
		return r, err
	}
	start := time.Now()
	if r.real, err = play(ctx, v, s, c); err != nil {
		return r, err
	}
	took := time.Since(start)
	if update {
		r.kept = r.real
		err = r.real.write(folder)
	}
	r.print(w, took)
	return r, err
}

// pick leaves all campaigns, or those of the names, which commas separate.
func pick(all []campaign, names string) []campaign {
	if names == "" {
		return all
	}
	wanted := strings.Split(names, ",")
	return slices.DeleteFunc(all, func(c campaign) bool { return !slices.Contains(wanted, c.name) })
}
