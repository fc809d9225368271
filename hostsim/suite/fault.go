package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// fault is a fault with its place, at which a case fails when the fault was never played.
type fault struct {
	place
	hostsim.Fault
}

var faultFields = []field[fault]{
	{"at", func(d *decoder, v value, f *fault) { d.text(v, &f.At) }},
	{"worker", func(d *decoder, v value, f *fault) { d.text(v, &f.Worker) }},
	{"nth", func(d *decoder, v value, f *fault) { d.count(v, 1, 1<<30, &f.Nth) }},
	{"every", func(d *decoder, v value, f *fault) { d.count(v, 1, 1<<30, &f.Every) }},
	{"times", func(d *decoder, v value, f *fault) { d.count(v, 1, 1<<30, &f.Times) }},
	{"answer", func(d *decoder, v value, f *fault) { d.text(v, &f.Answer) }},
	{"trap", func(d *decoder, v value, f *fault) { d.onlyTrue(v, &f.Trap) }},
	{"out_of_memory", func(d *decoder, v value, f *fault) { d.onlyTrue(v, &f.OutOfMemory) }},
	{"delay", func(d *decoder, v value, f *fault) { d.text(v, &f.Delay) }},
}

// faults reads a list of faults.
func (d *decoder) faults(v value) []fault {
	list := []fault{}
	for _, item := range d.items(v, "a list of faults") {
		f := fault{place: item.place}
		n := len(d.problems)
		object(d, item, faultFields, &f)
		if err := f.Validate(); err != nil && !d.failed(n) {
			d.fail(item.place, "%s", strings.TrimPrefix(err.Error(), hostsim.ErrFault.Error()+": "))
		}
		list = append(list, f)
	}
	return list
}

// plain is the list as a host takes it.
func plain(faults []fault) []hostsim.Fault {
	var list []hostsim.Fault
	for _, f := range faults {
		list = append(list, f.Fault)
	}
	return list
}

// inject puts a step's faults into force.
func (a *attempt) inject(faults []fault) {
	a.checkPlayed()
	if err := a.host.InjectFaults(plain(faults)); err != nil {
		a.fail(a.of.place, "", "%v", err)
		return
	}
	a.faults = faults
}

// checkPlayed: a fault of the case that never happens tests nothing.
func (a *attempt) checkPlayed() {
	if len(a.faults) == 0 || a.host == nil {
		return
	}
	for i, n := range a.host.FaultsFired() {
		if f := a.faults[i]; n == 0 {
			a.fail(f.place, "", "the fault at %s was never played%s", f.At, a.notThere(f.At))
		}
	}
	a.faults = nil
}

// notThere says why a place is never reached: the module does not have it.
func (a *attempt) notThere(at string) string {
	c := a.host.Coverage()
	if slices.ContainsFunc(c.Callbacks, func(l hostsim.CallbackCoverage) bool { return l.Name == at }) ||
		slices.ContainsFunc(c.HostCalls, func(l hostsim.HostCallCoverage) bool { return l.Name == at }) {
		return ""
	}
	return ", for the module neither imports nor exports it"
}

// foreignFunction is what a foreign function answers, whatever its argument.
type foreignFunction struct {
	result string
	status hostsim.Status
}

var foreignFields = []field[foreignFunction]{
	{"result", func(d *decoder, v value, f *foreignFunction) { d.text(v, &f.result) }},
	{"status", func(d *decoder, v value, f *foreignFunction) {
		if i := d.oneOf(v, statusNames()); i >= 0 {
			f.status = hostsim.Status(i)
		}
	}},
}

// statusNames are in the order of their numbers.
func statusNames() []string {
	var names []string
	for s := hostsim.StatusOK; s <= hostsim.StatusUnimplemented; s++ {
		names = append(names, fmt.Sprint(s))
	}
	return names
}

// foreignFunctions reads a mapping of names to results.
func (d *decoder) foreignFunctions(v value, into *map[string]hostsim.ForeignFunction) {
	out := map[string]hostsim.ForeignFunction{}
	for name, f := range *into {
		out[name] = f
	}
	for _, m := range d.members(v, "a mapping of names to what the functions answer") {
		var f foreignFunction
		if isMapping(m.value) {
			object(d, m.value, foreignFields, &f)
		} else if s, ok := d.scalar(m.value, "text, or result and status,"); ok {
			f.result = s
		}
		out[m.key] = func(int, []byte) ([]byte, hostsim.Status) { return []byte(f.result), f.status }
	}
	*into = out
}
