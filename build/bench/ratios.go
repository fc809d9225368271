package main

import "fmt"

// ratio is taken between two series of results, round by round.
type ratio struct {
	name   string
	of, to string  // each is a benchmark's number: package, benchmark and unit
	most   float64 // the aim; 0 is none
}

const turn = "plugin.Turn/policy=sticky_least_loaded/turn="

// ratios are what the project aims at or tells. A sticky turn's work must not grow with sessions or replicas; what does grow is
// the machine's cost of reading one of many values, the gateway's as well, which the ratio of cold turns shows.
var ratios = []ratio{
	{name: "sticky turn: 30,000 sessions to 1,000", most: 1.3,
		of: turn + "sticky/replicas=64/sessions=30000 cpu-ns/op", to: turn + "sticky/replicas=64/sessions=1000 cpu-ns/op"},
	{name: "sticky turn: 1,000,000 sessions to 1,000", most: 1.3,
		of: turn + "sticky/replicas=64/sessions=1000000 cpu-ns/op", to: turn + "sticky/replicas=64/sessions=1000 cpu-ns/op"},
	{name: "cold turn: 1,000,000 sessions to 1,000",
		of: turn + "cold/replicas=64/sessions=1000000 cpu-ns/op", to: turn + "cold/replicas=64/sessions=1000 cpu-ns/op"},
	// Few replicas have targets that are kept; the aim for a whole turn, gateway and all, is docs/benchmarks.md's.
	{name: "sticky turn: 64 replicas to 4",
		of: turn + "sticky/replicas=64/sessions=30000 cpu-ns/op", to: turn + "sticky/replicas=4/sessions=30000 cpu-ns/op"},
	{name: "sticky turn: 1,024 replicas to 64", most: 1.3,
		of: turn + "sticky/replicas=1024/sessions=30000 cpu-ns/op", to: turn + "sticky/replicas=64/sessions=30000 cpu-ns/op"},
	// A new session's shard is as cold as that of any of many.
	{name: "placement to cold turn: 64 replicas, 30,000 sessions",
		of: turn + "placement/replicas=64/sessions=30000 cpu-ns/op", to: turn + "cold/replicas=64/sessions=30000 cpu-ns/op"},
	{name: "placement: 64 replicas to 4",
		of: turn + "placement/replicas=64/sessions=30000 cpu-ns/op", to: turn + "placement/replicas=4/sessions=30000 cpu-ns/op"},
	{name: "placement: 1,024 replicas to 4",
		of: turn + "placement/replicas=1024/sessions=30000 cpu-ns/op", to: turn + "placement/replicas=4/sessions=30000 cpu-ns/op"},
	{name: "tick of three VMs in hostsim: 64 replicas to 4",
		of: "plugin.Tick/replicas=64 ns/op", to: "plugin.Tick/replicas=4 ns/op"},
	// What hostsim's own page says of itself: 54 ns a host call, 1,771 by reflection; 7 to 9 us a stream with five host calls,
	// 127 to 154 in the SDK's emulator; 12.4 us one with a body of 2 KB; 44 ms to read code that takes 1.4 s or more to compile.
	{name: "host call: by reflection to hostsim's way",
		of: "hostsim.HostCall/by=reflection ns/op", to: "hostsim.HostCall/by=stack ns/op"},
	{name: "stream of five host calls, in host calls", most: 165,
		of: "hostsim.Hosts/host=hostsim ns/op", to: "hostsim.HostCall/by=stack ns/op"},
	{name: "stream with a body of 2 KB, in host calls", most: 230,
		of: "hostsim.Lifecycle ns/op", to: "hostsim.HostCall/by=stack ns/op"},
	{name: "stream of five host calls: hostsim to wazero alone",
		of: "hostsim.Hosts/host=hostsim ns/op", to: "hostsim.Hosts/host=wazero ns/op"},
	{name: "stream of five host calls: the SDK's emulator to hostsim",
		of: "hostsim.Hosts/host=emulator ns/op", to: "hostsim.Hosts/host=hostsim ns/op"},
	{name: "a module's code: read to compiled",
		of: "hostsim.Module/do=read ns/op", to: "hostsim.Module/do=compile ns/op"},
	{name: "a module: instance to compiled",
		of: "hostsim.Module/do=instantiate ns/op", to: "hostsim.Module/do=compile ns/op"},
	{name: "the campaign of 19,582 turns: by the shipped module to by the policy in process",
		of: "hostsim/cmd/hostsim.Campaign/decided=wasm cpu-ms/op", to: "hostsim/cmd/hostsim.Campaign/decided=policy cpu-ms/op"},
	{name: "the campaign of 19,582 turns: by the policy in process to by a hash",
		of: "hostsim/cmd/hostsim.Campaign/decided=policy cpu-ms/op", to: "hostsim/cmd/hostsim.Campaign/decided=hash cpu-ms/op"},
}

// garbage are the benchmarks that shall allocate nothing.
var garbage = []string{
	turn + "sticky/replicas=64/sessions=1000", turn + "sticky/replicas=64/sessions=1000000",
	turn + "sticky/replicas=1024/sessions=30000", turn + "placement/replicas=64/sessions=30000",
	turn + "placement/replicas=1024/sessions=30000",
}

// ratios returns the rows of all ratios, and the allocations that there shall not be. Errors: a benchmark is missing.
func (rs *results) ratios() (rows []row, err error) {
	value := func(name string, round int) (float64, error) {
		if s := rs.series[name]; round < len(s) {
			return s[round], nil
		}
		return 0, fmt.Errorf("round %d has no %s", round+1, name)
	}
	for _, r := range ratios {
		var values []float64
		for round := range rs.rounds() {
			of, err := value(r.of, round)
			if err != nil {
				return nil, err
			}
			to, err := value(r.to, round)
			if err != nil {
				return nil, err
			}
			values = append(values, of/to)
		}
		row := rowOf(r.name, "x", values)
		if r.most > 0 {
			row.Most = &r.most
		}
		rows = append(rows, row)
	}
	for _, name := range garbage {
		s := rs.series[name+" allocs/op"]
		if s == nil {
			return nil, fmt.Errorf("%s counts no allocations", name)
		}
		row := rowOf("allocations: "+name, "allocs/op", s)
		row.Most = new(float64)
		rows = append(rows, row)
	}
	return rows, nil
}
