package replay

import (
	"errors"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
)

// Etcd is away when the schedule says, and no other event concerns it.
func TestEtcdOutages(t *testing.T) {
	e, err := NewEtcd(0, []Event{
		{Kind: EventFail, At: time.Second}, {Kind: EventEtcdDown, At: 2 * time.Second, For: time.Second},
		{Kind: EventEtcdHangs, At: 2500 * time.Millisecond, For: time.Second}, {Kind: EventEtcdHangs, At: 9 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]etcd.Outage{
		0: etcd.NoOutage, 1500: etcd.NoOutage, 2000: etcd.Refused, 2999: etcd.Refused, 3000: etcd.Hung, 3499: etcd.Hung, 3500: etcd.NoOutage,
		9000: etcd.Hung, 1e6: etcd.Hung,
	} {
		if got := e.outageAt(at * time.Millisecond); got != want {
			t.Errorf("after %d ms: %d, want %d", at, got, want)
		}
	}
	for _, latency := range []time.Duration{-1, 999, 2 * time.Hour} {
		if _, err := NewEtcd(latency, nil); !errors.Is(err, ErrRouterConfig) {
			t.Errorf("%v: %v", latency, err)
		}
	}
}
