package replica

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestReadEngineLog(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want []EngineRecord
	}{
		// The second waits 0.05 s before the engine takes note of it: the clocks differ by 90 s.
		"two clocks": {`{"input_toks":20,"output_toks":3,"arrival_time":100.5,"queued_ts":10.55,"scheduled_ts":10.6,"first_token_ts":11,"last_token_ts":12}

{"request_id":"a","input_toks":10,"output_toks":2,"arrival_time":100,"queued_ts":10,"first_token_ts":10.25,"last_token_ts":10.5}
{"input_toks":30,"output_toks":1,"arrival_time":101,"queued_ts":11.5,"first_token_ts":12,"last_token_ts":1e300}
`, []EngineRecord{{10, 2, 0, 250 * ms, 500 * ms}, {20, 3, 500 * ms, 1000 * ms, 2000 * ms}, {30, 1, 1000 * ms, 2000 * ms, 100 * 365 * 24 * time.Hour}}},
		"one clock":      {`{"input_toks":10,"output_toks":1,"arrival_time":7,"first_token_ts":7.5,"last_token_ts":7.5}`, []EngineRecord{{10, 1, 0, 500 * ms, 500 * ms}}},
		"queued only":    {`{"input_toks":10,"output_toks":1,"queued_ts":7,"first_token_ts":7.5,"last_token_ts":7.5}`, []EngineRecord{{10, 1, 0, 500 * ms, 500 * ms}}},
		"zero is a time": {`{"input_toks":10,"output_toks":1,"arrival_time":0,"first_token_ts":0,"last_token_ts":0}`, []EngineRecord{{10, 1, 0, 0, 0}}},
		// Out of order; the third failed, the fourth says nothing.
		"vllm bench serve": {`{"backend":"openai","input_lens":[5,6,7,8],"output_lens":[3,1,0,2],"start_times":[2.5,2,2,2],"ttfts":[0.25,0.5,0,0.5],
"itls":[[0.125,0.125],[],[],[0.25]],"errors":["","","timeout","broken"]}`,
			[]EngineRecord{{6, 1, 0, 500 * ms, 500 * ms}, {5, 3, 500 * ms, 750 * ms, 1000 * ms}}},
	} {
		got, err := ReadEngineLog(strings.NewReader(c.log))
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestReadEngineLogRefuses(t *testing.T) {
	const ok = `{"input_toks":10,"output_toks":2,"arrival_time":1,"first_token_ts":2,"last_token_ts":3}` + "\n"
	for log, want := range map[string]string{
		"":     "no finished request",
		"{}\n": "line 1: wants arrival_time",
		ok + `{"input_toks":10,"output_toks":2,"arrival_time":1,"first_token_ts":2}`: "line 2: wants",
		ok + "\n{":                                   "line 3: ",
		ok + strings.Replace(ok, "10", "0", 1):       "line 2: 0 prompt and 2 output tokens",
		strings.Replace(ok, `_ts":2`, `_ts":0.5`, 1): "line 1: not in this order",
		strings.Replace(ok, `_ts":3`, `_ts":1.5`, 1): "line 1: not in this order",
		`{"input_lens":[1],"output_lens":[1]}`:       "--save-detailed",
		`{"input_lens":[1],"output_lens":[0],"start_times":[0],"ttfts":[0],"itls":[[]]}`: "no finished request",
	} {
		if got, err := ReadEngineLog(strings.NewReader(log)); !errors.Is(err, ErrEngineLog) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want an error with %q", log, got, err, want)
		}
	}
}

func TestEngineRecord(t *testing.T) {
	r := EngineRecord{Prompt: 9, Output: 5, Arrival: 100 * ms, FirstToken: 300 * ms, Finished: 700 * ms}
	if r.TTFT() != 200*ms || r.TPOT() != 100*ms || r.E2E() != 600*ms {
		t.Errorf("%v %v %v", r.TTFT(), r.TPOT(), r.E2E())
	}
	if one := (EngineRecord{Output: 1, Finished: ms}); one.TPOT() != 0 {
		t.Errorf("one token: %v", one.TPOT())
	}
}

func TestLogLatency(t *testing.T) {
	var log []EngineRecord
	for i := 200; i > 0; i-- { // first tokens after 1..200 ms, then two tokens 10 ms each
		d := time.Duration(i) * ms
		log = append(log, EngineRecord{Prompt: 1, Output: 3, Arrival: d, FirstToken: 2 * d, Finished: 2*d + 20*ms})
	}
	log = append(log, EngineRecord{Prompt: 1, Output: 1, FirstToken: 201 * ms, Finished: 201 * ms}) // without a time between tokens
	ttft, tpot, e2e := LogLatency(log)
	if want := (Latency{101 * ms, 101 * ms, 199 * ms}); ttft != want {
		t.Errorf("first token: %v, want %v", ttft, want)
	}
	if want := (Latency{10 * ms, 10 * ms, 10 * ms}); tpot != want {
		t.Errorf("between tokens: %v, want %v", tpot, want)
	}
	if e2e.P50 != 121*ms || e2e.P99 != 218*ms {
		t.Errorf("last token: %v", e2e)
	}
	if ttft, tpot, e2e := LogLatency(nil); ttft != (Latency{}) || tpot != (Latency{}) || e2e != (Latency{}) {
		t.Errorf("of nothing: %v %v %v", ttft, tpot, e2e)
	}
}

func FuzzReadEngineLog(f *testing.F) {
	f.Add(`{"input_toks":10,"output_toks":2,"arrival_time":1,"queued_ts":1,"first_token_ts":2,"last_token_ts":3}`)
	f.Add(`{"input_lens":[5],"output_lens":[3],"start_times":[2.5],"ttfts":[0.25],"itls":[[0.125,0.125]],"errors":[""]}`)
	f.Add(`{"input_lens":[5],"output_lens":[-1],"start_times":[-1e308],"ttfts":[1e308],"itls":[[1e308,1e308]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		log, err := ReadEngineLog(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrEngineLog) {
				t.Fatal(err)
			}
			return
		}
		if len(log) == 0 || log[0].Arrival != 0 {
			t.Fatalf("begins with %v", log)
		}
		last := time.Duration(0)
		for _, r := range log {
			if r.Arrival < last || r.TTFT() < 0 || r.Finished < r.FirstToken || r.Prompt < 1 || r.Output < 1 {
				t.Fatalf("%+v", log)
			}
			last = r.Arrival
		}
	})
}
