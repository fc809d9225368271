package replica_test

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// Two turns of one session on a server of Qwen3-32B: the second finds all full blocks of the first one's prompt.
func ExampleEngine() {
	config, err := replica.Preset("H100", "qwen3-32b", 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := replica.NewEngine(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	var ids []uint64 // of 64 tokens each, as a trace names them
	var now time.Duration
	for _, prompt := range []int{20_000, 21_000} {
		for len(ids) < prompt/64 {
			ids = append(ids, uint64(len(ids)))
		}
		turn := &replica.Request{Prompt: prompt, Output: 100, Keys: replica.AppendKeys(nil, ids, 64, config.BlockTokens, prompt)}
		if err := engine.Submit(now, turn); err != nil {
			fmt.Println(err)
			return
		}
		for end, busy := engine.Start(now); busy; end, busy = engine.Start(now) {
			now = end
			engine.End()
		}
		fmt.Printf("%d of %d tokens cached, first token after %v, done after %v\n", turn.Cached, turn.Prompt,
			(turn.FirstToken - turn.Submitted).Round(time.Millisecond), (turn.Finished - turn.Submitted).Round(time.Millisecond))
	}
	// Output:
	// 0 of 20000 tokens cached, first token after 1.738s, done after 3.398s
	// 19968 of 21000 tokens cached, first token after 115ms, done after 1.78s
}
