package plugin

import "testing"

// elect runs ticks of a second and returns who held the lease at each: a letter
// for each worker, "-" for nobody.
func elect(t *testing.T, ticks int, reluctance func(tick int) []int, leases ...*lease) (held string) {
	t.Helper()
	for tick := range ticks {
		now := int64(1000 + tick*1000)
		holder := "-"
		for i, r := range reluctance(tick) {
			if r < 0 { // the worker is gone
				continue
			}
			if leases[i].hold(now, r) {
				if holder != "-" {
					t.Errorf("tick %d: two workers hold the lease", tick)
				}
				holder = string(rune('a' + i))
			}
		}
		held += holder
	}
	return held
}

func TestLease(t *testing.T) {
	const gone = -1
	for what, c := range map[string]struct {
		reluctance func(tick int) []int
		want       string
	}{
		"an idle worker comes first":   {func(int) []int { return []int{serving, serving, idle} }, "cccccccccc"},
		"serving workers wait a tick":  {func(int) []int { return []int{serving, serving} }, "-aaaaaaaaa"},
		"the first of several idle":    {func(int) []int { return []int{idle, idle} }, "aaaaaaaaaa"},
		"the holder stays when others": {func(tick int) []int { return []int{serving, []int{gone, idle}[tick/5]} }, "-aaaaaaaaa"},
		"a holder that is gone is followed": {func(tick int) []int {
			if tick < 4 {
				return []int{idle, serving}
			}
			return []int{gone, serving}
		}, "aaaa---bbb"},
		"a superseded holder is followed": {func(tick int) []int {
			if tick < 4 {
				return []int{idle, gone}
			}
			return []int{superseded, idle}
		}, "aaaa--bbbb"},
		"also by one that serves": {func(tick int) []int {
			if tick < 4 {
				return []int{idle, gone}
			}
			return []int{superseded, serving}
		}, "aaaa---bbb"},
		"a superseded one is better than none": {func(tick int) []int { return []int{superseded} }, "--a----a--"},
	} {
		t.Run(what, func(t *testing.T) {
			data := newMemoryData()
			var leases []*lease
			for i := range len(c.reluctance(0)) {
				leases = append(leases, newLease(data, "p", uint64(i+1)))
			}
			if got := elect(t, len(c.want), c.reluctance, leases...); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
