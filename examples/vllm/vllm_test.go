//go:build vllm

// Package vllm runs real vLLM replicas behind real Envoy: make e2e-vllm.
package vllm

import "testing"

// Two replicas take minutes to start on a busy machine, so one pair serves all tests; the last one kills a replica.
func TestVLLM(t *testing.T) {
	replicas := startReplicas(t, 2)
	t.Run("Page", func(t *testing.T) { page(t, replicas[0]) })
	t.Run("Pause", func(t *testing.T) { pause(t, replicas[0]) })
	t.Run("Compare", func(t *testing.T) { compare(t, replicas) })
	t.Run("Crash", func(t *testing.T) { crash(t, replicas) })
}
