package report

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// The JSON of a result has the keys of testdata/keys.txt, no other, and comes back as it was.
func TestJSON(t *testing.T) {
	r := fake(four[:2], 2, 3)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	collect(keys, "", tree)
	golden(t, "testdata/keys.txt", strings.Join(slices.Sorted(maps.Keys(keys)), "\n")+"\n")
	// What the documented command line promises.
	for _, want := range []string{"policies[].policy", "policies[].seeds[].wall_s", "policies[].seeds[].t95_s", "policies[].seeds[].hit_rate", "policies[].seeds[].requests_max_min",
		"policies[].seeds[].busy_max_min", "policies[].seeds[].ttft_p50_s", "policies[].seeds[].ttft_p99_s", "policies[].seeds[].preemptions"} {
		if !keys[want] {
			t.Errorf("there is no %s", want)
		}
	}
	var back replay.Result
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, r) {
		t.Error("a result does not come back as it was")
	}
}

// collect adds the paths of all keys.
func collect(keys map[string]bool, path string, tree any) {
	switch v := tree.(type) {
	case map[string]any:
		for k, child := range v {
			at := strings.TrimPrefix(path+"."+k, ".")
			if strings.HasSuffix(path, ".reasons") {
				at = path + ".*"
			}
			keys[at] = true
			collect(keys, at, child)
		}
	case []any:
		for _, child := range v {
			collect(keys, path+"[]", child)
		}
	}
}
