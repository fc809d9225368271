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
	f.log(p, key, d, d.Reason.String())
}

// log writes a line with a reason that need not be the decision's.
func (f *filter) log(p *pool, key policy.Key, d policy.Decision, reason string) {
	c := &f.config.DecisionLog
	if !c.Enabled || !c.samples(key) {
		return
	}
	line := p.appendDecision(f.line[:0], key, d, reason, time.Now())
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

func (p *pool) appendDecision(b []byte, key policy.Key, d policy.Decision, reason string, at time.Time) []byte {
	b = append(b, `{"pinwheel":"decision","time":"`...)
	b = appendTime(b, at)
	b = append(b, `","pool":"`...)
	b = append(b, p.Name...)
	b = append(b, `","session":`...)
	if key == (policy.Key{}) {
		b = append(b, "null"...)
	} else {
		b = append(append(append(b, '"'), shortHash(key.Hash)...), '"')
	}
	b = append(append(b, `,"reason":"`...), reason...)
	b = append(b, `","replica":`...)
	view := &p.store.view
	i := view.Index(d.Replica)
	if i < 0 {
		return append(b, "null}"...)
	}
	b = json.AppendString(b, view.List[i].Address)
	if d.Reason == policy.Pinned {
		return append(b, '}')
	}
	if p.readsPrompts() && d.Reason <= policy.Expired {
		b = strconv.AppendFloat(append(b, `,"prefix":`...), p.store.held, 'f', 2, 64)
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
		b = json.AppendString(b, view.List[j].Address)
		b = strconv.AppendUint(append(b, ':'), uint64(view.List[j].Open), 10)
	}
	return append(b, "}}"...)
}

// shortHash is how a session is named in logs: 32 of the 128 bits of its hash.
func shortHash(h policy.Hash) string {
	s := "0000000" + strconv.FormatUint(h.Hi>>32, 16)
	return s[len(s)-8:]
}

// appendTime appends a time as time.RFC3339Nano has it in UTC, years 0 to 9999. The layouts of package time, and the zones
// behind them, are 60 KB of code. The calendar's year begins on 1 March here, so that a leap day is the last of its year.
func appendTime(b []byte, at time.Time) []byte {
	const (
		day       = 24 * 60 * 60
		century   = 100*365 + 24
		centuries = 4*century + 1 // in days
	)
	since := at.Unix() + 719468*day // 1 March of year 0
	days := since / day
	second := int(since - days*day)
	if second < 0 { // in January or February of year 0
		days, second = days-1, second+day
	}
	cycle := days / centuries
	if days < 0 {
		cycle--
	}
	n := int(days - cycle*centuries)
	year := (n - n/(4*365) + n/century - n/(centuries-1)) / 365
	n -= 365*year + year/4 - year/100
	month := (5*n + 2) / 153 // 0 is March; five months have 153 days
	n -= (153*month + 2) / 5
	year += int(cycle) * 400
	if month += 3; month > 12 {
		month, year = month-12, year+1
	}
	b = appendPadded(b, year, 1000)
	b = appendPadded(append(b, '-'), month, 10)
	b = appendPadded(append(b, '-'), n+1, 10)
	b = appendPadded(append(b, 'T'), second/3600, 10)
	b = appendPadded(append(b, ':'), second/60%60, 10)
	b = appendPadded(append(b, ':'), second%60, 10)
	if fraction := at.Nanosecond(); fraction != 0 {
		b = appendPadded(append(b, '.'), fraction, 100_000_000)
		for b[len(b)-1] == '0' {
			b = b[:len(b)-1]
		}
	}
	return append(b, 'Z')
}

// appendPadded appends n in as many digits as unit, a power of ten, has.
//
//go:noinline
func appendPadded(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return b
}
