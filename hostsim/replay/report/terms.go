package report

import "github.com/pinwheel-proxy/pinwheel/hostsim/replay"

// term is a word of the report and what it means.
type term struct{ Word, Meaning string }

// termsOf are the words of a page about r.
func termsOf(r *replay.Result) (list []term) {
	for _, t := range terms {
		if t.Word != homes || anyHomes(r.Policies) {
			list = append(list, t)
		}
	}
	return list
}

var terms = []term{
	{"wall, t95", "When the last session had ended, and when 95% of them had. One long session sets the wall, so look at both."},
	{"hit rate", "Prompt tokens found in a replica's cache when the turn was first admitted, by all prompt tokens. The ideal is that of one cache without bound for all."},
	{"reported hit rate, queries/prompt", "What vLLM's metric showed for long: it counts a prompt again at each attempt to admit it. Queries/prompt is how often it did."},
	{"TTFT, TPOT, E2E", "Time to first token; time per output token after it; from sent to the last token."},
	{"queue", "From sent to admitted by the engine."},
	{"requests and busy max/mean", "The busiest replica by the mean of all; 1.00 is even. Busy is the time an engine had a step to do."},
	{"preemptions", "Requests that lost their blocks to others and were computed again."},
	{"moves", "Turns that another replica served than the session's turn before: their cache is cold."},
	{homes, "Replicas that served a session's turns, in the mean of the sessions; one in the place of a replica that was lost does not count. 1 is agreement of the gateways."},
	{"retries, errors", "Turns that were sent again; turns that nobody served."},
	{"KV use", "The share of the block pools that requests held while replicas were busy."},
	{"decisions/s", "Decisions by the time this machine spent in them. Everything else is time of the simulated clock."},
	{"seed", "One run. Seeds differ in whatever is left to chance; differences between policies that are smaller than those between seeds say nothing."},
}
