package envoytest

// Standing is what the plugin's status tells of a replica, and its answer to an
// order that concerns one.
type Standing struct {
	// Address is set in a status, Replica in the answer to an order.
	Address, Replica, State string
	// OpenSessions counts the pins on it.
	OpenSessions int `json:"open_sessions"`
	// EndedSessions is how many a reset ended; only its answer has it.
	EndedSessions int `json:"ended_sessions"`
	// Inflight counts running requests: other workers' as of their last tick.
	Inflight int
	// Drain says that an operator drains it, Empty that nothing is left on it.
	Drain, Empty bool
	Health       struct {
		// Failures in a row, and the length of a cool-down in ms; 0 is none.
		Failures   int
		CooldownMS int `json:"cooldown_ms"`
	}
}

// Status is the plugin's answer to GET /pinwheel/status.
type Status struct {
	Pools []struct{ Replicas []Standing }
}
