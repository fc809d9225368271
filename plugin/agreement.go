package plugin

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// agreement keeps each session of a pool at one home together with other gateways. etcd is asked when a session comes to
// this gateway, and on no later turn: the pin that it leaves here is trusted.
//
// A pin is in doubt where etcd could not be asked, or what it said may have been overtaken. Its next turn asks. What makes a
// trusted pin right is an order, too:
//
//  1. Whoever changes a home writes an entry in the change log in the same transaction. Each gateway reads the log once in
//     a poll, and unpins what has another home, or none, by then.
//  2. An answer of a revision that the log has been read beyond leaves a pin in doubt: the entry that overtook it may have
//     come when there was no pin to take out. The log is announced before it is taken in, and looked at again after a pin was
//     written.
//  3. The keys of a session hang on a lease that outlasts the pins of its bucket of time. The first turn in another bucket
//     puts its pin in doubt until etcd has hung the keys on that bucket's lease.
type agreement struct {
	AgreementConfig
	store *store
	data  sharedData
	calls *callouts
	pool  string
	keys  etcd.Keys
	// log is what the names of this gateway's leases of the change log begin with: a lease that a gateway with another clock has
	// made may end at any time.
	log string
	// key and tokenKey are of shared data: the state, and the token that etcd gave.
	key, tokenKey string
	// chooser chooses candidates by the sessions of all gateways.
	chooser policy.Policy
	// bucket is the length of a bucket of time, in ms, ttl that of its leases, in s, and shards is their number.
	bucket, ttl, shards int64
	// wall is how far, in ms, the clock of the day is ahead of the gateway's.
	wall int64
	// state is as last read.
	state agreementState
	// beginning says that the gateway may not know its clusters yet.
	beginning bool
	// owed is what etcd has to be told once it is well; of the queue so many are under way.
	owed     []instruction
	queue    []queued
	underway int
	stats    agreementStats
	// granted is the lease of the change log that this worker has made last.
	granted int64
	latency abi.Metric
	// warned paces the warnings, the last of which was said; told is set until the operator hears that etcd answers again.
	warned warning
	said   string
	told   bool
	// fleet and buf are scratch.
	fleet policy.Replicas
	buf   []byte
}

const (
	// boundFactor and boundSlack are the bound for candidates of policies that go by load: far enough above a fair share that
	// nearly all sessions stay with the first replica of their order, where gateways send them that cannot ask etcd.
	boundFactor = 1.1
	boundSlack  = 1
	// sessionsOfLease is how many sessions share a lease: etcd 3.4 stands still for 131 ms when one of 10,000 ends, for
	// less than 20 ms with 1,000.
	sessionsOfLease = 1000
	// logLife is how long an entry of the change log is there at least, in ms.
	logLife = 60_000
	// settlingOutage is the time after an outage, in ms, for which candidates are those of gateways that cannot ask: some
	// have not heard yet that etcd is back.
	settlingOutage = 5000
)

// newAgreement returns the agreement of a pool. process is a secret of the gateway's process.
func newAgreement(data sharedData, s *store, pc PoolConfig, c *Config, calls *callouts, process policy.Secret) *agreement {
	keys := etcd.Keys{Root: c.Agreement.Prefix + "/" + pc.Name + "/"}
	// A configuration that drains beside this one may have another etcd, log or user.
	of := hex16(policy.RankAddress(c.Agreement.Cluster + "\x00" + keys.Root + "\x00" + c.Agreement.Username))
	a := &agreement{
		AgreementConfig: c.Agreement, store: s, data: data, calls: calls, pool: pc.Name, keys: keys,
		log: "log." + hex16(policy.NewKey(process, nil).Hash.Lo) + ".",
		key: s.prefix + "agreement/" + of, tokenKey: s.prefix + "token/" + of,
		chooser: s.policy,
		bucket:  max(s.timeout/4, 1000),
		shards:  (int64(c.Session.MaxSessions) + sessionsOfLease - 1) / sessionsOfLease,
	}
	if (s.policy == policy.StickyLeastLoaded{}) {
		a.chooser = policy.ConsistentHash{LoadFactor: boundFactor, Slack: boundSlack}
	}
	a.ttl = (s.timeout + 3*a.bucket + 999) / 1000
	a.latency = abi.DefineHistogram("pinwheel_agreement_ms.pool." + pc.Name)
	a.setWall()
	s.agreed = true
	s.sum += policy.RankAddress("agreement at " + a.Cluster + a.keys.Root)
	return a
}

func (a *agreement) setWall() { a.wall = time.Now().UnixMilli() - milliseconds() }

// trusts reports whether a pin that holds needs no question.
func (a *agreement) trusts(sh shard, at int) bool {
	return !sh.doubted(at) && sh.pin(at).LastSeen >= a.floor()
}

// floor is the time before which pins are in doubt: they were made without an agreement, or of another one, or the change
// log was lost since.
func (a *agreement) floor() int64 { return max(a.state.epoch, a.store.view.membership.adopted) }

// well reports whether etcd may be asked, as this worker last heard.
func (a *agreement) well() bool { return a.state.down == 0 }

// candidate chooses a home for the session by the sessions of all gateways, and counts it there. id is 0 where there is none.
func (a *agreement) candidate(key policy.Key, leaving uint32, known policy.PrefixMatch, now int64) (id uint32) {
	s := a.store
	if !s.current(now) {
		return 0
	}
	a.update(func(state *agreementState) bool {
		a.fleet.Placements, a.fleet.NextID = s.view.Placements, s.view.NextID
		a.fleet.List = append(a.fleet.List[:0], s.view.List...)
		for i := range a.fleet.List {
			a.fleet.List[i].Open = *state.sessions(a.fleet.List[i].ID)
		}
		chooser := a.chooser
		if state.recovered != 0 && now-state.recovered < settlingOutage {
			chooser = policy.ConsistentHash{}
		}
		i := chooser.Choose(&a.fleet, policy.Query{Key: key, Now: now, Leaving: leaving, Prefix: known})
		if id = 0; i < 0 {
			return false
		}
		id = a.fleet.List[i].ID
		*state.sessions(id)++
		return true
	})
	return id
}

// uncount takes a session off the replica that has lost it, or never got it.
func (a *agreement) uncount(id uint32) {
	a.update(func(state *agreementState) bool {
		n := state.sessions(id)
		if *n == 0 {
			return false
		}
		*n--
		return true
	})
}

// leases returns those of the session at now.
func (a *agreement) leases(h policy.Hash, now int64) etcd.Leases {
	return etcd.Leases{Session: a.lease(a.bucketOf(now), int64(h.Lo>>33)%a.shards), Log: a.logLease(now)}
}

// bucketOf returns the bucket of a time on the gateway's clock. All gateways whose clocks agree to within a bucket use the
// same leases, or one whose time is not up.
func (a *agreement) bucketOf(now int64) int64 { return (now + a.wall) / a.bucket }

// lease returns the id of a bucket's lease: every gateway finds the same without asking. Leases are of all of etcd, so the
// id is a hash of what they are for.
func (a *agreement) lease(bucket, shard int64) int64 {
	return a.leaseID(decimal(uint64(bucket)) + "." + decimal(uint64(shard)) + "." + decimal(uint64(a.ttl)))
}

func (a *agreement) logLease(now int64) int64 {
	return a.leaseID(a.log + decimal(uint64(now/logLife)))
}

// logTTL is that of the change log's leases, in s: an entry is made in their first bucket of time.
const logTTL = 3 * logLife / 1000

func (a *agreement) leaseID(name string) int64 {
	return int64(policy.RankAddress(a.keys.Root+name)>>1 | 1)
}

// current reports whether nothing can have overtaken what etcd said at that revision.
func (a *agreement) current(revision int64) bool {
	_, ok := a.read()
	return ok && revision >= a.state.announced
}

// settle pins the session to the home that etcd has named at that revision; placed says that it was this gateway's
// candidate. seen is when it was asked, by which the session's lease was chosen. It reports whether there was room.
func (a *agreement) settle(h policy.Hash, id uint32, placed bool, revision, seen, now int64) (room bool) {
	trusted := a.current(revision)
	room = a.store.settle(h, id, placed, !trusted, seen, now, a)
	if trusted && !a.current(revision) {
		a.store.setDoubt(h, id, true)
	}
	return room
}

// confirm trusts the pin of the session, if it is still on that replica, as of what etcd said at that revision.
func (a *agreement) confirm(h policy.Hash, id uint32, revision int64) {
	if a.current(revision) && a.store.setDoubt(h, id, false) && !a.current(revision) {
		a.store.setDoubt(h, id, true)
	}
}

// keep renews the pin of a session whose turn runs, and, once in a bucket of time, its lease.
func (a *agreement) keep(h policy.Hash, id uint32, now int64) {
	if renewed, due := a.store.keep(h, id, now, a); renewed && due {
		a.renew(h, id, now, 0)
	}
}

// renew hangs the session on the lease of now; its pin is in doubt until that is done.
func (a *agreement) renew(h policy.Hash, id uint32, now int64, tries int) {
	address := a.store.addressOf(id)
	if address == "" || !a.well() {
		return
	}
	leases := a.leases(h, now)
	a.call(callRenew, etcd.TxnPath, a.keys.Renew(sessionName(h), address, leases), func(r etcd.Answer) {
		switch {
		case r.Code == etcd.OK && r.Succeeded:
			a.confirm(h, id, r.Revision)
		case r.Code == etcd.NotFound && tries == 0:
			a.grant(leases, func() { a.renew(h, id, now, 1) })
		}
	})
}

// sessionName is how etcd's keys name a session.
func sessionName(h policy.Hash) string { return hex16(h.Hi) + hex16(h.Lo) }

func hex16(n uint64) string {
	s := "000000000000000" + strconv.FormatUint(n, 16)
	return s[len(s)-16:]
}

// namedSession is the inverse of sessionName.
func namedSession(name string) (h policy.Hash, ok bool) {
	if len(name) != 32 {
		return h, false
	}
	high, err1 := strconv.ParseUint(name[:16], 16, 64)
	low, err2 := strconv.ParseUint(name[16:], 16, 64)
	return policy.Hash{Hi: high, Lo: low}, err1 == nil && err2 == nil
}

// agreedSecret keys the hashes of sessions that gateways agree on: it is the same in all gateways of one configuration, and
// unknown to those who do not know that. Without a password it is no secret.
func agreedSecret(c AgreementConfig) (secret policy.Secret) {
	h := policy.NewKey(policy.Secret{}, []byte(c.Prefix+"\x00"+c.Username+"\x00"+c.Password)).Hash
	binary.LittleEndian.PutUint64(secret[:], h.Hi)
	binary.LittleEndian.PutUint64(secret[8:], h.Lo)
	return secret
}

// warn tells the operator of a state that lasts: once a minute, of another one after ten seconds.
func (a *agreement) warn(text string, now int64) {
	const another = 10_000
	if text == a.said && !a.warned.due(now) || text != a.said && a.said != "" && now-a.warned.last < another {
		return
	}
	a.said, a.warned.last, a.told = text, now, true
	proxywasm.LogWarn("pinwheel: pool " + a.pool + ": cluster " + quote(a.Cluster) + ": " + text)
}
