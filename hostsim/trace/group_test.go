package trace

import (
	"reflect"
	"strings"
	"testing"
)

func TestGroups(t *testing.T) {
	rows := `{"group":"g","stream":0,"prompt_len":100,"system_len":32,"out_lens":[10,7],"obs_lens":[30]}
{"group":"g","stream":1,"prompt_len":100,"system_len":32,"out_lens":[20],"obs_lens":[5]}
{"group":7,"stream":"a","prompt_len":100,"system_len":32,"out_lens":[0],"obs_lens":[]}
{"group":"alone","prompt_len":40,"system_len":32,"out_lens":[3],"obs_lens":[0]}
`
	r, format, err := Open(strings.NewReader(rows), Options{})
	if err != nil || format != Groups {
		t.Fatalf("format %q, %v", format, err)
	}
	sessions, err := ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	const system, group, own = classSpace | 32<<32, groupSpace | 1<<32, 1 << 32
	want := []Session{
		{ID: "g/0", Group: "g", System: 32, BlockTokens: 16, Replays: true, Turns: []Turn{
			{Input: 100, Output: 10, Blocks: []Run{{system | 1, 2}, {group | 3, 4}}},
			{Input: 140, Output: 7, Blocks: []Run{{system | 1, 2}, {group | 3, 4}, {own | 7, 2}}}}},
		{ID: "g/1", Group: "g", System: 32, BlockTokens: 16, Replays: true, Turns: []Turn{
			{Input: 100, Output: 20, Blocks: []Run{{system | 1, 2}, {group | 3, 4}}}}},
		{ID: "7/a", Group: "7", System: 32, BlockTokens: 16, Replays: true, Turns: []Turn{
			{Input: 100, Blocks: []Run{{system | 1, 2}, {2*groupSpace>>1 | 2<<32 | 3, 4}}}}},
		{ID: "alone", System: 32, BlockTokens: 16, Replays: true, Turns: []Turn{
			{Input: 40, Output: 3, Blocks: []Run{{system | 1, 2}}}}},
	}
	if !reflect.DeepEqual(sessions, want) {
		t.Errorf("got  %+v\nwant %+v", sessions, want)
	}
	// The same with larger blocks.
	if r, _, err = Open(strings.NewReader(rows), Options{BlockTokens: 64}); err != nil {
		t.Fatal(err)
	}
	if sessions, err = ReadAll(r); err != nil || sessions[0].BlockTokens != 64 || BlockCount(sessions[0].Turns[1].Blocks) != 2 {
		t.Errorf("blocks of 64: %+v, %v", sessions, err)
	}
}

func TestGroupBadLines(t *testing.T) {
	const good = `{"group":"g","stream":0,"prompt_len":100,"out_lens":[10],"obs_lens":[]}`
	checkBadRows(t, Options{}, good, strings.Replace(good, "0", "1", 1), []badRow{
		{"again", good, `"g/0" was on line 1 already`},
		{"another prompt", `{"group":"g","stream":2,"prompt_len":99,"out_lens":[10],"obs_lens":[]}`, "100 and 0 for this group on line 1"},
		{"no group", `{"stream":2,"prompt_len":99,"out_lens":[10],"obs_lens":[]}`, "group: not"},
		{"group of null", `{"group":null,"stream":2,"prompt_len":99,"out_lens":[10],"obs_lens":[]}`, "group: not"},
		{"stream of a list", `{"group":"h","stream":[],"prompt_len":99,"out_lens":[10],"obs_lens":[]}`, "stream: not"},
		{"no turns", `{"group":"h","stream":2,"prompt_len":99,"out_lens":[],"obs_lens":[]}`, "0 and 0 of them; out_lens needs one or more"},
		{"too few observations", `{"group":"h","stream":2,"prompt_len":99,"out_lens":[1,1,1],"obs_lens":[2]}`, "3 and 1 of them; out_lens needs one or more, obs_lens one fewer than out_lens or as many"},
		{"negative", `{"group":"h","stream":2,"prompt_len":99,"out_lens":[1,1],"obs_lens":[-2]}`, "obs_lens[0]: -2"},
		{"negative output", `{"group":"h","stream":2,"prompt_len":99,"out_lens":[1,-1],"obs_lens":[2]}`, "turn 1: 102 input and -1"},
		{"longer than tokens go", `{"group":"h","stream":2,"prompt_len":1073741824,"out_lens":[1,1],"obs_lens":[2]}`, "turn 1: 1073741827 input"},
		{"system beyond the prompt", `{"group":"h","stream":2,"prompt_len":9,"system_len":10,"out_lens":[1],"obs_lens":[2]}`, "system_len: 10 of a prompt of 9"},
	})
}
