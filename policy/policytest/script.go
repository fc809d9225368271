package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrScript marks a script that cannot be understood.
var ErrScript = errors.New("policytest: bad script")

// Case is one conversation, from an empty gateway on.
type Case struct {
	Name string
	// Text is the transcript: the lines after the case's own, commands and
	// recorded output.
	Text string
}

// Parse splits a script into its prose header and its cases. Errors: ErrScript.
func Parse(script string) (header string, cases []Case, err error) {
	header, rest, found := strings.Cut(script, "\ncase ")
	if !found || !strings.HasPrefix(header, "# ") {
		return "", nil, fmt.Errorf("%w: want prose lines with #, then cases", ErrScript)
	}
	for block := range strings.SplitSeq(rest, "\ncase ") {
		name, text, _ := strings.Cut(block, "\n")
		cases = append(cases, Case{name, strings.TrimRight(text, "\n") + "\n"})
	}
	return strings.TrimRight(header, "\n") + "\n", cases, nil
}

// Format is the inverse of Parse.
func Format(header string, cases []Case) string {
	for _, c := range cases {
		header += "\ncase " + c.Name + "\n" + c.Text
	}
	return header
}

// Run gives the commands of the case to the target, which must be new, and
// returns the transcript as it went: equal to c.Text if the target does what was
// recorded. Errors: ErrScript, with the line.
func (c Case) Run(t Target) (transcript string, err error) {
	r := run{
		target: t, pool: "default", members: map[string][]Replica{},
		options: Options{Timeout: 2 * time.Hour, MaxSessions: 100000, MaxIDBytes: 256},
	}
	for line := range strings.Lines(c.Text) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case strings.HasPrefix(line, "#") || line == "\n":
			r.out.WriteString(line)
		case ok:
			r.out.WriteString(line)
			verb, args, _ := strings.Cut(strings.TrimSpace(command), " ")
			if err := r.command(verb, strings.Fields(args)); err != nil {
				return "", fmt.Errorf("%w: case %q: %q: %w", ErrScript, c.Name, strings.TrimSpace(command), err)
			}
		}
	}
	return r.out.String(), nil
}

type run struct {
	target  Target
	out     strings.Builder
	pool    string
	options Options
	members map[string][]Replica
}

func (r *run) command(verb string, args []string) (err error) {
	if (verb == "pool" || verb == "advance") && len(args) != 1 {
		return errors.New("want one argument")
	}
	switch verb {
	case "options":
		return r.setOptions(args)
	case "replicas":
		return r.setReplicas(args)
	case "pool":
		r.pool = args[0]
	case "turn":
		for _, id := range expand(args) {
			d := r.target.Turn(r.pool, id)
			fmt.Fprintf(&r.out, "%s %s %s\n", id, d.Reason, r.name(d.Address))
		}
	case "together":
		var reasons []string
		for _, d := range r.target.Together(r.pool, expand(args)) {
			reasons = append(reasons, d.Reason)
		}
		r.printCounts(reasons)
	case "keyless":
		return r.keyless(args)
	case "finish":
		for _, id := range expand(args) {
			r.target.Finish(r.pool, id)
		}
	case "advance":
		d, err := time.ParseDuration(args[0])
		r.target.Advance(d)
		return err
	case "sweep":
		r.target.Sweep()
	case "open":
		r.open()
	default:
		return errors.New("unknown command")
	}
	return nil
}

func (r *run) setOptions(args []string) (err error) {
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "timeout":
			r.options.Timeout, err = time.ParseDuration(value)
		case "max_sessions":
			r.options.MaxSessions, err = strconv.Atoi(value)
		case "max_id_bytes":
			r.options.MaxIDBytes, err = strconv.Atoi(value)
		default:
			err = fmt.Errorf("unknown option %s", key)
		}
		if err != nil {
			return err
		}
	}
	// Before the first replicas line there is no pool to configure.
	if members, ok := r.members[r.pool]; ok {
		r.target.Configure(r.pool, r.options, members)
	}
	return nil
}

func (r *run) setReplicas(args []string) error {
	var members []Replica
	for _, arg := range args {
		spec, weight, weighted := strings.Cut(arg, "*")
		name, state, stated := strings.Cut(spec, ":")
		if len(name) != 1 || name[0] < 'a' || name[0] > 'z' {
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
		fmt.Fprintf(&r.out, "%s %s\n", d.Reason, r.name(d.Address))
		return nil
	}
	n, err := strconv.Atoi(args[0])
	var served []string
	for range n {
		d := r.target.Keyless(r.pool)
		served = append(served, d.Reason+" "+r.name(d.Address))
	}
	r.printCounts(served)
	return err
}

func (r *run) open() {
	var addresses, counts []string
	for _, m := range r.members[r.pool] {
		addresses = append(addresses, m.Address)
	}
	for i, n := range r.target.Open(r.pool, addresses) {
		counts = append(counts, fmt.Sprintf("%s %d", r.name(addresses[i]), n))
	}
	if len(counts) == 0 {
		counts = append(counts, "no members")
	}
	fmt.Fprintln(&r.out, strings.Join(counts, ", "))
}

func (r *run) printCounts(of []string) {
	slices.Sort(of)
	var parts []string
	for len(of) > 0 {
		n := 1
		for n < len(of) && of[n] == of[0] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, of[0]))
		of = of[n:]
	}
	fmt.Fprintln(&r.out, strings.Join(parts, ", "))
}

func (r *run) name(address string) string {
	for c := 'a'; c <= 'z'; c++ {
		if Address(string(c)) == address {
			return string(c)
		}
	}
	return "-"
}

// expand replaces each s1..s3 by s1 s2 s3.
func expand(ids []string) (all []string) {
	for _, id := range ids {
		first, last, ok := strings.Cut(id, "..")
		if !ok {
			all = append(all, id)
			continue
		}
		prefix := strings.TrimRight(first, "0123456789")
		low, _ := strconv.Atoi(first[len(prefix):])
		high, _ := strconv.Atoi(strings.TrimPrefix(last, prefix))
		for n := low; n <= high; n++ {
			all = append(all, prefix+strconv.Itoa(n))
		}
	}
	return all
}
