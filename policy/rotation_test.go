package policy

import (
	"slices"
	"testing"
)

func TestRotation(t *testing.T) {
	var o Rotation
	r := some(3)
	if got := o.Of(r); !slices.Equal(got, []uint64{0, 0, 0}) {
		t.Errorf("at first %v", got)
	}
	o.Chose(3)
	o.Chose(1)
	o.Chose(3)
	if got := o.Of(r); !slices.Equal(got, []uint64{2, 0, 3}) {
		t.Errorf("3, 1 and 3 chosen: %v", got)
	}
	r.Apply([]Member{{Address: "r1", Weight: 1}, {Address: "r2", Weight: 1}}, 0, 0)
	r.Forget(0, 0)
	if got := o.Of(r); !slices.Equal(got, []uint64{0, 3}) {
		t.Errorf("without the first: %v", got)
	}
}

// TestRotationForgets replicas that are no more: ids are never given twice, so
// that what is kept of old ones would grow for ever.
func TestRotationForgets(t *testing.T) {
	var o Rotation
	r := some(2)
	for id := uint32(1); id < 1000; id++ {
		o.Chose(id)
		if o.Of(r); len(o.last) > 3 {
			t.Fatalf("%d remembered of 2", len(o.last))
		}
	}
	if got := o.Of(r); !slices.Equal(got, []uint64{1, 2}) {
		t.Errorf("%v", got)
	}
}
