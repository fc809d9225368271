// Package policy decides which replica serves a turn of a session.
//
// It is the pure core of Pinwheel: time, loads, membership, random bits and
// hashes are arguments, results are values, and nothing outside an argument is
// read or changed. A decision may therefore run again when a compare-and-swap on
// shared data fails. Nothing here is safe for concurrent use without the caller's
// own ordering; in the gateway that ordering is the compare-and-swap.
//
// Replicas is the membership, load and health of one pool, Pin is what is
// remembered of one session, Judge rules on a pin at revisit, and a Policy chooses
// a replica where there is no pin. A Prompt is a prompt's prefixes as hashes and a
// PrefixShard what is known of them. Pool puts all together for one caller at a
// time: it is the specification that the plugin's concurrent store is tested
// against, and the in-process arm of a replay.
package policy
