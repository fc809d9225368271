package plugin

// fault is a kind of error that the plugin got past. It is a metric label.
type fault uint8

const (
	// faultPanic: a callback panicked.
	faultPanic fault = iota
	// faultSharedData: the gateway refused to read or write shared data.
	faultSharedData
	// faultSchema: shared data holds what this version cannot read.
	faultSchema
	// faultCAS: other workers won every try of a compare-and-swap loop.
	faultCAS
	// faultCount: a count would have gone below zero.
	faultCount
	// faultHeader: the gateway refused to set a header.
	faultHeader
	// faultRepeatedHeader: a request had several session ids in one header; the
	// first counted.
	faultRepeatedHeader
	// faultServedElsewhere: another host than the named one served. Looked at once
	// a tick, so the number is of samples.
	faultServedElsewhere
	// faultBodyLate: a request waited for its body in vain and was routed without.
	faultBodyLate
	// faultBodyWithheld: a request did not wait for its body, because this gateway
	// withholds bodies from requests that wait.
	faultBodyWithheld
	// faultBodyBusy: a request did not wait for its body, because too many did.
	faultBodyBusy
	// faultDiscovery: the gateway's admin interface did not tell a pool's hosts.
	faultDiscovery

	numFaults = int(faultDiscovery) + 1
)

var faultNames = [numFaults]string{"panic", "shared_data", "schema", "cas_exhausted", "count_clamped", "header", "repeated_header", "served_elsewhere",
	"body_late", "body_withheld", "body_busy", "discovery"}
