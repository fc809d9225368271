package plugin

import (
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// isAdmin reports whether the path is one for operators, and returns what follows
// the configured part, and the query.
func (f *filter) isAdmin(path string) (action, query string, ok bool) {
	prefix := f.config.Admin.Path
	if !begins(path, prefix) {
		return "", "", false
	}
	rest := path[len(prefix):]
	action, query, _ = strings.Cut(rest, "?")
	return action, query, action == "" || action[0] == '/'
}

// admin does what an operator asks for and returns the answer; such a request is
// never forwarded.
func (f *filter) admin(r *request, action, query string) localReply {
	var answer localReply
	status, body := f.execute(r, action, query, &answer)
	if status == 200 {
		answer.status, answer.body = 200, body
		return answer
	}
	a := refusal(status, body)
	if status == 405 {
		a.headers = [][2]string{{"allow", methodOf(action)}}
	}
	return a
}

func methodOf(action string) string {
	if action == "/status" {
		return "GET"
	}
	return "POST"
}

// execute does what an operator asks for, and returns the answer's status and its
// body, or what is wrong. Who does not know the secret learns nothing else.
func (f *filter) execute(r *request, action, query string, answer *localReply) (status uint32, text string) {
	c := &f.config.Admin
	var o order
	switch {
	case c.Secret != "" && !equal(r.names.Value(r.admin), c.Secret):
		return 401, "missing or wrong " + c.SecretHeader
	case action != "/status" && action != "/drain" && action != "/undrain" && action != "/reset":
		return 404, "no " + action + " here; there are /status, /drain, /undrain and /reset"
	case r.names.Value(r.method) != methodOf(action):
		return 405, action + " is asked for by " + methodOf(action)
	}
	if wrong := o.read(query, action); wrong != "" {
		return 400, wrong
	}
	var pools []*pool
	var names []string
	for _, p := range f.pools {
		if names = append(names, p.Name); o.pool == "" || o.pool == p.Name {
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 {
		return 404, "no pool " + o.pool + "; there are " + strings.Join(names, ", ")
	}
	now := milliseconds()
	for _, p := range pools {
		if !p.store.current(now) {
			return 503, "shared data does not answer"
		}
	}
	told := instruction{kind: instructUndrain, address: o.replica}
	switch action {
	case "/status":
		return 200, f.status(pools, now)
	case "/reset":
		told.kind = instructReset
		status, text = resetPools(pools, now)
	case "/drain":
		told.kind = instructDrain
		fallthrough
	default:
		status, text = drainPools(pools, o.replica, action == "/drain", now)
	}
	for _, p := range pools {
		if status == 200 && p.agreement != nil {
			p.agreement.give(told, answer)
		}
	}
	return status, text
}

// order is what the query of an operator names.
type order struct{ replica, pool string }

// read reads the query and says what is wrong with it, if anything: a parameter
// that is passed over could mean that more is reset or drained than was meant.
func (o *order) read(query, action string) (wrong string) {
	wantsReplica := strings.HasSuffix(action, "drain")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		switch value = unescape(value); {
		case pair == "":
		case name == "pool" && o.pool != "", name == "replica" && o.replica != "":
			return name + " is given twice: give one at a time"
		case name == "pool" && value != "":
			o.pool = value
		case name == "replica" && wantsReplica:
			o.replica = value
		case wantsReplica:
			return pair + " is not known here: give ?replica=ADDRESS, and &pool=NAME if only that pool is meant"
		default:
			return pair + " is not known here: give ?pool=NAME, or nothing for all pools"
		}
	}
	if wantsReplica && o.replica == "" {
		return "no replica: give ?replica=ADDRESS"
	}
	if a, ok := canonicalAddress(o.replica); ok { // as configuration spells it
		o.replica = a
	}
	return ""
}

// resetPools ends all sessions of the pools.
func resetPools(pools []*pool, now int64) (status uint32, text string) {
	sum := uint64(0)
	for _, p := range pools {
		ended, ok := p.store.reset(now)
		if !ok {
			return 503, "pool " + p.Name + " was not reset: shared data does not take it"
		}
		sum += ended
	}
	return 200, `{"status":"ok","ended_sessions":` + decimal(sum) + "}"
}

// drainPools begins or ends the drain of the replica in each pool that has it.
func drainPools(pools []*pool, address string, drained bool, now int64) (status uint32, text string) {
	var found *policy.Replica
	var sum load
	for _, p := range pools {
		id, ok := p.store.drain(address, drained)
		if !ok {
			return 503, "pool " + p.Name + " did not change: shared data does not take it"
		}
		if i := p.store.view.Index(id); i >= 0 {
			found = &p.store.view.List[i]
			sum = sum.plus(p.loadOf(i, p.requests(now)))
		}
	}
	if found == nil {
		return 404, "no replica " + address + "; there are " + addressesOf(pools)
	}
	return 200, `{"status":"ok","replica":` + quoteJSON(address) + `,"state":"` + found.Condition().String() + `",` +
		sum.json() + drainJSON(found, sum) + "}"
}

// addressesOf names the members of the pools, the first of them if there are many.
func addressesOf(pools []*pool) string {
	const most = 16
	var known []string
	for _, p := range pools {
		for i := range p.store.view.List {
			c := &p.store.view.List[i]
			if c.State == policy.Removed || slices.Contains(known, c.Address) {
				continue
			}
			if len(known) == most {
				return strings.Join(known, ", ") + " and more"
			}
			known = append(known, c.Address)
		}
	}
	return strings.Join(known, ", ")
}
