package gateway

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestAttempts(t *testing.T) {
	const a, b, c = "10.0.0.1:80", "10.0.0.2:80", "[::1]:80"
	tests := []struct {
		name, list string
		limit      int
		want       []string
	}{
		{"no list: round robin", "", 3, []string{a, b, c}},
		{"named host first, others behind it", b, 3, []string{b, a, c}},
		{"order of the list", c + "," + a, 2, []string{c, a}},
		{"spaces and empty entries", " " + c + " , ,", 1, []string{c}},
		{"unknown entries cost nothing", "10.9.9.9:80,localhost:80," + b, 1, []string{b}},
		{"no attempt twice", b + "," + b, 3, []string{b, a, c}},
		{"garbage", "::1:80,10.0.0.1:080,,10.0.0.1", 1, []string{a}},
		{"limit cuts the list", a + "," + b + "," + c, 2, []string{a, b}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cl := newCluster(Cluster{Name: "x", Hosts: []string{a, b, "[0:0::1]:80"}})
			if got := cl.attempts(tt.list, tt.limit); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("attempts(%q) = %v, want %v", tt.list, got, tt.want)
			}
		})
	}
	t.Run("no hosts", func(t *testing.T) {
		if got := newCluster(Cluster{Name: "x"}).attempts("10.0.0.1:80", 3); len(got) != 0 {
			t.Errorf("%v from an empty cluster", got)
		}
	})
}

// Requests that name a host do not disturb the turn of those that do not.
func TestRoundRobinCountsOnlyItsOwn(t *testing.T) {
	cl := newCluster(Cluster{Name: "x", Hosts: []string{"a:1", "b:1", "c:1"}})
	count := map[string]int{}
	for i := range 300 {
		count[cl.attempts("", 1)[0]]++
		for range i % 3 {
			cl.attempts("b:1", 3)
		}
	}
	if want := map[string]int{"a:1": 100, "b:1": 100, "c:1": 100}; !reflect.DeepEqual(count, want) {
		t.Errorf("%v, want %v", count, want)
	}
}

func TestConfigIsValidated(t *testing.T) {
	one := func(hosts ...string) []Cluster { return []Cluster{{Name: "c", Hosts: hosts}} }
	for want, c := range map[string]Config{
		"no clusters":                   {},
		"Clusters[0]: no name":          {Clusters: []Cluster{{}}},
		`the name "c" is taken`:         {Clusters: append(one(), one()...)},
		`"::1:80" is not HOST:PORT`:     {Clusters: one("::1:80")},
		`":80" is not HOST:PORT`:        {Clusters: one(":80")},
		`port "http" is not a number`:   {Clusters: one("a:http")},
		`port "0" is not a number`:      {Clusters: one("a:0")},
		`port "080" is not a number`:    {Clusters: one("a:080")},
		`port "65536" is not a number`:  {Clusters: one("a:65536")},
		"Attempts is negative":          {Clusters: one("a:1"), Attempts: -1},
		"DialTimeout is negative":       {Clusters: one("a:1"), DialTimeout: -1},
		"MaxHeaderBytes is negative":    {Clusters: one("a:1"), MaxHeaderBytes: -1},
		"ReadHeaderTimeout is negative": {Clusters: one("a:1"), ReadHeaderTimeout: -1},
		"ShutdownTimeout is negative":   {Clusters: one("a:1"), ShutdownTimeout: -1},
		"BufferLimit is negative":       {Clusters: one("a:1"), BufferLimit: -1},
	} {
		if _, err := New(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}
