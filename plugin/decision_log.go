package plugin

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// logDecision writes one JSON line about a turn.
func (f *filter) logDecision(p *pool, key policy.Key, d policy.Decision) {
	c := &f.config.DecisionLog
	if !c.Enabled || !c.samples(key) {
		return
	}
	line := p.appendDecision(f.line[:0], key, d, time.Now())
	f.line = line
	switch c.Level {
	case "debug":
		proxywasm.LogDebug(string(line))
	case "warn":
		proxywasm.LogWarn(string(line))
	default:
		proxywasm.LogInfo(string(line))
	}
}

// samples says whether a turn is logged. The draw is by session, so that the log
// has all turns of a session or none of them; a request without one draws alone.
func (c *DecisionLogConfig) samples(key policy.Key) bool {
	draw := key.Hash.Hi
	if key == (policy.Key{}) {
		draw = rand.Uint64()
	}
	return c.Sample == 1 || float64(draw) < c.Sample*(1<<64)
}

func (p *pool) appendDecision(b []byte, key policy.Key, d policy.Decision, at time.Time) []byte {
	b = append(b, `{"pinwheel":"decision","time":"`...)
	b = at.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","pool":"`...)
	b = append(b, p.Name...)
	b = append(b, `","session":`...)
	if key == (policy.Key{}) {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), shortHash(key.Hash)...), '"')
	}
	b = append(append(b, `,"reason":"`...), d.Reason.String()...)
	b = append(b, `","replica":`...)
	view := &p.store.view
	i := view.Index(d.Replica)
	if i < 0 {
		return append(b, "null}"...)
	}
	b = json.AppendJSONString(b, view.List[i].Address)
	if d.Reason == policy.Pinned {
		return append(b, '}')
	}
	b = append(b, `,"open_sessions":{`...)
	first := true
	for j := range view.List {
		// A removed replica may have the address of one that came back.
		if view.List[j].State == policy.Removed {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = json.AppendJSONString(b, view.List[j].Address)
		b = strconv.AppendUint(append(b, ':'), uint64(view.List[j].Open), 10)
	}
	return append(b, "}}"...)
}

// shortHash is how a session is named in logs: 32 of the 128 bits of its hash.
func shortHash(h policy.Hash) string {
	s := "0000000" + strconv.FormatUint(h.Hi>>32, 16)
	return s[len(s)-8:]
}
