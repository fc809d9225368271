package plugin

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// smallData is shared data that holds so many bytes: it drops what was written first,
// or refuses.
type smallData struct {
	*memoryData
	most   int
	evicts bool
	order  []string
}

func (d *smallData) size() (n int) {
	for key, v := range d.values {
		n += len(key) + len(v)
	}
	return n
}

func (d *smallData) Set(key string, value []byte, cas uint32) error {
	if !d.evicts && d.size()+len(key)+len(value)-len(d.values[key]) > d.most {
		return errRefused
	}
	if err := d.memoryData.Set(key, value, cas); err != nil {
		return err
	}
	key = strings.Clone(key)
	d.order = append(slices.DeleteFunc(d.order, func(k string) bool { return k == key }), key)
	for d.size() > d.most {
		delete(d.values, d.order[0])
		delete(d.cas, d.order[0])
		d.order = d.order[1:]
	}
	return nil
}

// Kong/ngx_wasm_module#287, the hosts: shared data without bound, and of few bytes,
// which drops or refuses. 500 sessions of three turns each: every turn has a replica,
// and what is refused is a turn without a pin.
func TestSmallSharedData(t *testing.T) {
	for _, most := range []int{1 << 30, 64 << 10, 8 << 10, 1 << 10} {
		for _, evicts := range []bool{true, false} {
			data := &smallData{memoryData: newMemoryData(), most: most, evicts: evicts}
			p := newPool(data, PoolConfig{Name: "p", Members: addresses(4)}, benchConfig(1000), 1)
			p.store.adopt(0, 0)
			counts, pinned := map[uint32]int{}, 0
			for turn := range 3 {
				for i := range 500 {
					d := p.decide(keyOf(fmt.Sprint(i)), true, 0, nil, int64(1000+turn))
					if d.Replica == 0 {
						t.Fatalf("%d bytes, evicts %v: turn %d of session %d: %+v", most, evicts, turn, i, d)
					}
					counts[d.Replica]++
					if d.Reason == policy.Pinned {
						pinned++
					}
				}
			}
			if all := most >= 64<<10; all && pinned != 1000 || !all && pinned == 1000 {
				t.Errorf("%d bytes, evicts %v: %d of 1000 later turns pinned", most, evicts, pinned)
			}
			// Turns without a pin go to the fewest sessions, which are as many everywhere
			// only where they are lost.
			for id, n := range counts {
				if evicts && (n < 1500/4-200 || n > 1500/4+200) {
					t.Errorf("%d bytes, evicts %v: replica %d got %d of 1500 turns", most, evicts, id, n)
				}
			}
		}
	}
}
