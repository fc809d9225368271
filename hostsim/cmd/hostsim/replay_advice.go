package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// checkAdvice finds goals without --advise, and --advise without a goal.
func (f *replayFlags) checkAdvice() error {
	switch {
	case f.goalT95 < 0:
		return usagef("--goal-t95 %v is negative", f.goalT95)
	case !(f.goalHit >= 0 && f.goalHit <= 1):
		return usagef("--goal-hit %v is outside 0 to 1", f.goalHit)
	case !f.advise && (f.goalT95 > 0 || f.goalHit > 0):
		return usagef("a goal is for --advise: give that, too")
	case !f.advise:
		return nil
	case f.goalT95 == 0 && f.goalHit == 0:
		return usagef("--advise needs a goal: --goal-t95 15m, --goal-hit 0.9, or both")
	case len(f.events) > 0 || f.eventsFile != "":
		return usagef("--advise tries fleets of several sizes, in which an event is not the same: leave out --event and --events")
	case f.html != "":
		return usagef("--advise writes no HTML: use --json, or replay what it advises with --html")
	}
	return nil
}

// advice is the JSON form of what --advise found.
type advice struct {
	Setup     []replay.Fact   `json:"setup"`
	Policy    string          `json:"policy"`
	byDefault bool            // nobody named the policy
	Tried     []*fleetOutcome `json:"tried"`
	// Advice is nil where no fleet met the goal.
	Advice *fleetOutcome `json:"advice"`
}

// advise searches with the first policy, in process where that is possible, and plays what it found once more through the
// plugin.
func (r *replayRun) advise(ctx context.Context, stdout io.Writer) error {
	f := r.flags
	name, through := f.policies[0], throughPolicy
	if r.through(name) == throughBaseline {
		through = throughBaseline
	}
	a := &advisor{goal: fleetGoal{f.goalT95, f.goalHit}, maxReplicas: f.maxReplicas, sessions: r.source.sessions, fixedCap: f.concurrency,
		run: func(ctx context.Context, p fleetPoint) (*fleetOutcome, error) { return r.point(ctx, name, through, p) }}
	best, err := a.search(ctx)
	if err != nil && !errors.Is(err, errUnreachable) {
		return err
	}
	found := advice{Setup: r.setup(), Policy: name, byDefault: !f.policyGiven, Tried: a.tried, Advice: best}
	if best != nil && r.through(name) == throughWasm {
		confirmed, err := r.point(ctx, name, throughWasm, best.fleetPoint)
		if err != nil {
			return err
		}
		confirmed.Meets = a.goal.met(confirmed)
		found.Tried = append(found.Tried, confirmed)
		if found.Advice = confirmed; !confirmed.Meets {
			found.Advice = nil
		}
	}
	if err := f.writeJSON(&found, stdout); err != nil {
		return err
	}
	if f.json != "-" {
		if err := found.print(stdout, a.goal); err != nil {
			return err
		}
	}
	return found.verdict(a, best)
}

// point plays one fleet on all seeds.
func (r *replayRun) point(ctx context.Context, name, through string, p fleetPoint) (*fleetOutcome, error) {
	f := r.flags
	o := &fleetOutcome{fleetPoint: p, Through: through}
	bar := newProgress(terminalOnly(r.stderr), p.String(), r.source.turns*f.seeds)
	var campaigns []replay.Campaign
	for seed := range f.seeds {
		c, err := r.campaign(name, through, uint64(seed+1))
		if err != nil {
			return nil, err
		}
		c.Replicas, c.Concurrency = p.Replicas, p.Cap
		c.Progress = func(int) { bar.step() }
		campaigns = append(campaigns, c)
	}
	results, err := play(ctx, campaigns, func(int) string { return name })
	bar.end()
	if err != nil {
		return nil, err
	}
	for _, s := range results {
		o.T95, o.HitRate = append(o.T95, s.T95), append(o.HitRate, s.HitRate)
	}
	fmt.Fprintf(r.stderr, "%v, %s: t95 %s, hit rate %.4f\n", p, through, seconds(median(o.T95)), median(o.HitRate))
	return o, nil
}

// terminalOnly keeps a bar from where each point has a line anyway.
func terminalOnly(w io.Writer) io.Writer {
	if !isTerminal(w) {
		return io.Discard
	}
	return w
}

func (p fleetPoint) String() string {
	return fmt.Sprintf("%s, %s at once", counted(p.Replicas, "replica"), p.cap())
}

func (p fleetPoint) cap() string {
	if p.Cap == 0 {
		return "all"
	}
	return fmt.Sprint(p.Cap)
}

// args are the flags that replay the point.
func (p fleetPoint) args() string {
	args := fmt.Sprintf("--replicas %d", p.Replicas)
	if p.Cap > 0 {
		args += fmt.Sprintf(" --concurrency %d", p.Cap)
	}
	return args
}

// print writes the points in the order of their size.
func (a *advice) print(w io.Writer, goal fleetGoal) error {
	for _, fact := range a.Setup {
		if fact.Name != "fleet" { // its size is what is looked for
			fmt.Fprintf(w, "%-10s%s\n", fact.Name, fact.Value)
		}
	}
	policy := a.Policy
	if a.byDefault {
		policy += " (by default; --policy names another)"
	}
	fmt.Fprintf(w, "%-10s%s\n%-10s%v on every seed\n\n", "policy", policy, "goal", goal)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "replicas\tat once\tt95\tleast\tmost\thit rate\tleast\tmost\tgoal\t through\t\n")
	points := slices.Clone(a.Tried)
	slices.SortStableFunc(points, func(x, y *fleetOutcome) int {
		if x.Replicas != y.Replicas {
			return x.Replicas - y.Replicas
		}
		return cmp.Compare(uint(x.Cap-1), uint(y.Cap-1)) // 0, which is all, last
	})
	for _, o := range points {
		meets := "missed"
		if o.Meets {
			meets = "met"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%.4f\t%.4f\t%.4f\t%s\t %s\t\n", o.Replicas, o.cap(), seconds(median(o.T95)), seconds(slices.Min(o.T95)),
			seconds(slices.Max(o.T95)), median(o.HitRate), slices.Min(o.HitRate), slices.Max(o.HitRate), meets, o.Through)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if a.Advice == nil {
		return nil
	}
	_, err := fmt.Fprintf(w, "\nAdvice: %v (t95 %s, hit rate %.4f in the median of %s). Replay it with %s.\n", a.Advice.fleetPoint,
		seconds(median(a.Advice.T95)), median(a.Advice.HitRate), counted(len(a.Advice.T95), "seed"), a.Advice.args())
	return err
}

// seconds writes simulated seconds.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// verdict is the error where nothing can be advised.
func (a *advice) verdict(search *advisor, best *fleetOutcome) error {
	switch {
	case a.Advice != nil:
		return nil
	case best != nil:
		return fmt.Errorf("replay: %v met the goal in process and missed it through the plugin: ease the goal a little, or take a replica more", best.fleetPoint)
	}
	near := search.nearest()
	return fmt.Errorf("%w: %v is met by no fleet of up to %d replicas; the nearest is %v with t95 %s and a hit rate of %.4f: raise --max-replicas or ease the goal",
		errUnreachable, search.goal, search.maxReplicas, near.fleetPoint, seconds(slices.Max(near.T95)), slices.Min(near.HitRate))
}
