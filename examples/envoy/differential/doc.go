// Package differential plays the same exchanges through a real Envoy and through hostsim, with one plugin in both, and
// compares what came of them: every callback with its arguments, the status of every host call, what the client got and
// what the upstream got.
//
// The plugin is hostsim's probe (hostsim/testdata/guests/probe). An exchange is a piece of text in testdata: the probe's
// script, what client and upstream do, step by step, and under each step what that step caused, as recorded from Envoy.
// See Parse for the format. Times do not appear in a recording, and ids appear by what they stand for.
package differential
