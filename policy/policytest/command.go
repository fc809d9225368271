package policytest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// run is a script that is being run.
type run struct {
	target  Target
	out     strings.Builder
	pool    string
	options Options
	members map[string][]Replica
	failing map[string]bool // by address
}

func (r *run) command(verb string, args []string) (err error) {
	switch verb {
	case "policy", "pool", "advance":
		if len(args) != 1 {
			return errors.New("want one argument")
		}
		return r.setting(verb, args[0])
	case "options":
		for _, arg := range args {
			if err := r.options.set(arg); err != nil {
				return err
			}
		}
		r.configure()
	case "replicas":
		return r.setReplicas(args)
	case "fail", "ok", "drain", "undrain":
		return r.tell(verb, args)
	case "reset":
		r.target.Reset(r.pool)
	case "turn", "begin", "end", "finish":
		if len(args) == 0 {
			return errors.New("want a session")
		}
		r.each(verb, expand(args))
	case "prompt":
		return r.prompt(args)
	case "served":
		if len(args) != 2 || !isName(args[1]) {
			return errors.New("want a session and a replica")
		}
		r.printTurn(args[0], r.target.Served(r.pool, args[0], Address(args[1])))
	case "tally", "serial":
		return r.tally(args, verb == "serial")
	case "together":
		if len(args) == 0 {
			return errors.New("want sessions")
		}
		var reasons []string
		for _, d := range r.target.Together(r.pool, expand(args)) {
			reasons = append(reasons, d.Reason)
		}
		r.printCounts(reasons)
	case "keyless":
		return r.keyless(args)
	case "sweep":
		r.target.Sweep()
	case "open":
		r.open()
	default:
		return errors.New("unknown command")
	}
	return nil
}

func (r *run) setting(verb, arg string) error {
	switch verb {
	case "policy":
		r.options.Policy = arg
		r.configure()
	case "pool":
		r.pool = arg
	case "advance":
		d, err := time.ParseDuration(arg)
		r.target.Advance(d)
		return err
	}
	return nil
}

// configure gives the options to the pool, if it has members yet.
func (r *run) configure() {
	if members, ok := r.members[r.pool]; ok {
		r.target.Configure(r.pool, r.options, members)
	}
}

// each does the same with each session.
func (r *run) each(verb string, ids []string) {
	for _, id := range ids {
		switch verb {
		case "turn":
			r.printTurn(id, r.target.Turn(r.pool, id))
		case "begin":
			r.printTurn(id, r.target.Begin(r.pool, id))
		case "end":
			r.target.End(r.pool, id)
		case "finish":
			r.target.Finish(r.pool, id)
		}
	}
}

func (r *run) prompt(args []string) error {
	if len(args) < 2 {
		return errors.New("want a session and parts")
	}
	var text strings.Builder
	for _, part := range args[1:] {
		name, size, _ := strings.Cut(part, "*")
		n, err := strconv.Atoi(size)
		if err != nil || name == "" || n < 0 {
			return fmt.Errorf("part %q, want NAME*BYTES", part)
		}
		text.WriteString(strings.Repeat(name+" ", n/(len(name)+1)+1)[:n])
	}
	r.printTurn(args[0], r.target.Prompt(r.pool, args[0], text.String()))
	return nil
}

// tally counts where turns go: rounds of one turn each, or turns of sessions that
// end before the next begins.
func (r *run) tally(args []string, serial bool) (err error) {
	var every time.Duration
	rounds := 1
	for len(args) > 0 && err == nil {
		key, value, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		switch key {
		case "every":
			every, err = time.ParseDuration(value)
		case "rounds":
			rounds, err = strconv.Atoi(value)
		default:
			err = errors.New("unknown argument " + key)
		}
		args = args[1:]
	}
	var served []string
	for range rounds {
		for _, id := range expand(args) {
			served = append(served, r.went(r.target.Turn(r.pool, id)))
			if serial {
				r.target.Finish(r.pool, id)
			}
			r.target.Advance(every)
		}
	}
	r.printCounts(served)
	return err
}

// tell says something of replicas.
func (r *run) tell(verb string, names []string) error {
	if len(names) == 0 {
		return errors.New("want a replica")
	}
	for _, name := range names {
		if !isName(name) {
			return errors.New("a replica's name is one letter")
		}
		switch address := Address(name); verb {
		case "fail", "ok":
			r.failing[address] = verb == "fail"
			r.target.Answer(r.pool, address, verb == "ok")
		default:
			r.target.Drain(r.pool, address, verb == "drain")
		}
	}
	return nil
}

func isName(s string) bool { return len(s) == 1 && s[0] >= 'a' && s[0] <= 'z' }

func (r *run) setReplicas(args []string) error {
	var members []Replica
	for _, arg := range args {
		spec, weight, weighted := strings.Cut(arg, "*")
		name, state, stated := strings.Cut(spec, ":")
		if !isName(name) {
			return errors.New("a replica's name is one letter")
		}
		m := Replica{Address: Address(name), State: "active", Weight: 1}
		if stated {
			m.State = state
		}
		if weighted {
			w, err := strconv.ParseUint(weight, 10, 16)
			if err != nil {
				return err
			}
			m.Weight = uint32(w)
		}
		members = append(members, m)
	}
	r.members[r.pool] = members
	r.target.Configure(r.pool, r.options, members)
	return nil
}

func (r *run) keyless(args []string) error {
	if len(args) == 0 {
		d := r.target.Keyless(r.pool)
		fmt.Fprintln(&r.out, r.went(d))
		return nil
	}
	n, err := strconv.Atoi(args[0])
	var served []string
	for range n {
		d := r.target.Keyless(r.pool)
		served = append(served, r.went(d))
	}
	r.printCounts(served)
	return err
}
