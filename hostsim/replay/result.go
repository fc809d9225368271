package replay

// Result is everything that a campaign measured. Its JSON is what `hostsim replay --json` writes. Times are in seconds of
// the simulated clock, rates are 0 to 1; no number is infinite or none. What there is much of (samples, percentiles, spans) is
// rounded to a millionth.
type Result struct {
	// Setup says what was replayed, for a reader of the report: in the order in which it is shown.
	Setup []Fact `json:"setup"`
	// Ideal is the hit rate of one cache without bound for everybody, in blocks of the engine's size.
	Ideal float64 `json:"ideal_hit_rate"`
	// Gateways is their number, where there are several.
	Gateways int            `json:"gateways,omitempty"`
	Policies []PolicyResult `json:"policies"`
}

// Fact is one line of a report's head, such as {"trace", "weka_cc_24.ci: 24 sessions, 736 turns"}.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// PolicyResult is one policy's runs, one a seed.
type PolicyResult struct {
	Policy string `json:"policy"`
	// Through is "wasm", "in process" or "baseline".
	Through string       `json:"through"`
	Seeds   []SeedResult `json:"seeds"`
}

// SeedResult is one run.
type SeedResult struct {
	Seed uint64 `json:"seed"`
	// Wall is when the last session ended, T95 when 95% of them had.
	Wall float64 `json:"wall_s"`
	T95  float64 `json:"t95_s"`
	// HitRate is prompt tokens found in a cache at the first admission, by prompt tokens. ReportedHitRate divides by what was
	// looked up at every attempt to admit, as vLLM's metric did for long. QueriesPerPrompt is that number by prompt tokens.
	HitRate          float64 `json:"hit_rate"`
	ReportedHitRate  float64 `json:"reported_hit_rate"`
	QueriesPerPrompt float64 `json:"queries_per_prompt"`
	// RequestsMaxMin and BusyMaxMin compare the busiest replica with the least busy one (0: that one had nothing),
	// RequestsMaxMean and BusyMaxMean with the mean.
	RequestsMaxMin  float64 `json:"requests_max_min"`
	RequestsMaxMean float64 `json:"requests_max_mean"`
	BusyMaxMin      float64 `json:"busy_max_min"`
	BusyMaxMean     float64 `json:"busy_max_mean"`
	// Latencies of the turns that were served, as in Percentiles.
	TTFTP50  float64 `json:"ttft_p50_s"`
	TTFTP99  float64 `json:"ttft_p99_s"`
	TPOTP50  float64 `json:"tpot_p50_s"`
	TPOTP99  float64 `json:"tpot_p99_s"`
	E2EP50   float64 `json:"e2e_p50_s"`
	E2EP99   float64 `json:"e2e_p99_s"`
	QueueP50 float64 `json:"queue_p50_s"`
	QueueP99 float64 `json:"queue_p99_s"`
	// SessionMean is a session's mean time from its first turn to its end.
	SessionMean float64 `json:"session_mean_s"`
	Sessions    int     `json:"sessions"`
	Turns       int     `json:"turns"`
	Preemptions int64   `json:"preemptions"`
	Moves       int     `json:"moves"` // turns that another replica served than the session's turn before
	// HomesPerSession is, with several gateways, how many replicas served a session's turns, in the mean of the sessions; one that
	// took the place of a replica that had crashed or gone does not count. 1 is agreement.
	HomesPerSession float64 `json:"homes_per_session,omitempty"`

	Retries int `json:"retries"`
	Errors  int `json:"errors"` // turns that nobody served
	// Reasons counts decisions by reason.
	Reasons map[string]int `json:"reasons"`
	// KVUseMean and KVUseMax are the share of the pools held by requests, over the time that replicas were busy.
	KVUseMean float64 `json:"kv_use_mean"`
	KVUseMax  float64 `json:"kv_use_max"`
	// DecisionsPerSecond is decisions by the machine's time spent in the router; it is not simulated.
	DecisionsPerSecond float64 `json:"decisions_per_second"`

	Replicas []ReplicaResult `json:"replicas"`
	// Samples are taken at even distances of time, at most 256.
	Samples []Sample `json:"samples"`
	// Latency holds the 0th, 1st, .. 100th percentile of each latency.
	Latency Percentiles `json:"latency"`
	// Slowest are the sessions that ended last, at most 24, the last first. A session's turns are those that were served.
	Slowest []SessionSpan `json:"slowest"`
}

// ReplicaResult is what one replica did.
type ReplicaResult struct {
	Address      string  `json:"address"`
	Sessions     int     `json:"sessions"`      // that it served a turn
	Requests     int64   `json:"requests"`      // that its engine had, those among them that it lost in a crash
	PromptTokens int64   `json:"prompt_tokens"` // of turns that it served, as are CachedTokens
	CachedTokens int64   `json:"cached_tokens"`
	Preemptions  int64   `json:"preemptions"`
	Busy         float64 `json:"busy_s"` // time of its steps; of one that a crash ends, until then
}

// Sample is the fleet at one time.
type Sample struct {
	At float64 `json:"at_s"`
	// Open is the number of sessions that have begun and not ended. HitRate is that of the turns admitted since the sample
	// before; -1 where there were none. PromptTokens are their prompts, CachedTokens what was cached of those.
	Open         int     `json:"open_sessions"`
	HitRate      float64 `json:"hit_rate"`
	PromptTokens int64   `json:"prompt_tokens"`
	CachedTokens int64   `json:"cached_tokens"`
	// By replica: requests running and waiting, and the share of its pool held.
	Requests []int     `json:"requests"`
	KVUse    []float64 `json:"kv_use"`
}

// Percentiles are 101 values each, in seconds, or empty where nothing was measured. Queue, TTFT and E2E run from the first
// sending of a turn to its admission, its first token and its last one: Campaign.Overhead and what was sent again are in
// them. TPOT is the time from the first token to the last by the tokens after the first, of turns with two tokens or more.
type Percentiles struct {
	TTFT  []float64 `json:"ttft_s"`
	TPOT  []float64 `json:"tpot_s"`
	E2E   []float64 `json:"e2e_s"`
	Queue []float64 `json:"queue_s"`
}

// SessionSpan is a session in a Gantt chart.
type SessionSpan struct {
	Session string     `json:"session"`
	Turns   []TurnSpan `json:"turns"`
}

// TurnSpan is one turn: sent, admitted, first token, end.
type TurnSpan struct {
	Replica  int     `json:"replica"`
	Sent     float64 `json:"sent_s"`
	Admitted float64 `json:"admitted_s"`
	First    float64 `json:"first_token_s"`
	End      float64 `json:"end_s"`
	Cached   int     `json:"cached_tokens"`
	Prompt   int     `json:"prompt_tokens"`
}
