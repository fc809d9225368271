//go:build peer

package main

import (
	"context"
	"testing"
)

func TestRouter(t *testing.T) {
	testPeer(t, func(b *bench, ctx context.Context) (*arm, error) { return b.startWithRouter(ctx, true) })
}
