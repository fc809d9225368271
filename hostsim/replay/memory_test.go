package replay

import (
	"context"
	"runtime"
	"testing"
	"weak"
)

// A result keeps nothing of its run: with a plugin's memory in each, a campaign of many seeds would keep gigabytes.
func TestResultKeepsNoRouter(t *testing.T) {
	c := campaign(talks(2, 2, 160), 1)
	var kept weak.Pointer[late]
	c.NewRouter = func(context.Context, int, uint64, []Member) (Router, error) {
		l := &late{t: t}
		kept = weak.Make(l)
		return l, nil
	}
	result := play(t, c)
	c.NewRouter = nil
	runtime.GC()
	if kept.Value() != nil {
		t.Error("the router is still reachable from the result")
	}
	runtime.KeepAlive(result)
}
