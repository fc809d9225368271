// Package etcd writes requests to etcd's v3 JSON gateway and reads the answers: as much of it as gateways need that agree on
// the homes of sessions. It has no state. A request's bytes matter: etcd passes over fields that it does not know, and a
// transaction whose compare list is misspelt always succeeds.
//
// Source: etcd, api/etcdserverpb/rpc.proto; the JSON form was run against etcd 3.4.23 and 3.7.3.
package etcd

import (
	"encoding/base64"
	"strconv"
)

// Paths of the requests, all POST.
const (
	TxnPath          = "/v3/kv/txn"
	GrantPath        = "/v3/lease/grant"
	AuthenticatePath = "/v3/auth/authenticate"
)

// Keys are those of one pool. Sessions are named by a hash in hexadecimal digits.
type Keys struct {
	// Root is what all begin with, "/" at its end.
	Root string
}

func (k Keys) home(session string) string          { return k.Root + "s/" + session }
func (k Keys) held(address, session string) string { return k.Root + "r/" + address + "/" + session }
func (k Keys) change(session string) string        { return k.Root + "f/" + session }
func (k Keys) drain(address string) string         { return k.Root + drains + address }

// Orders of operators: the drain of each address, and the last reset.
const (
	orders = "o/"
	drains = orders + "drain/"
	reset  = orders + "reset"
)

// Leases are what the keys of a session, and those of the change log, hang on.
type Leases struct{ Session, Log int64 }

// Create makes the address the session's home if it has none, else asks for the one it has.
func (k Keys) Create(session, address string, l Leases) string {
	return `{"compare":[{"target":"CREATE",` + field("key", k.home(session)) + `,"create_revision":"0"}],"success":[` +
		put(k.home(session), address, l.Session) + "," + put(k.held(address, session), "", l.Session) +
		`],"failure":[` + get(k.home(session)) + "]}"
}

// Move gives the session another home if it has the one that it moves from, else asks for the one it has. The addresses
// differ: etcd refuses two operations on one key.
func (k Keys) Move(session, from, to string, l Leases) string {
	return k.ifHome(session, from) + `"success":[` +
		put(k.home(session), to, l.Session) + "," + remove(k.held(from, session)) + "," + put(k.held(to, session), "", l.Session) + "," +
		put(k.change(session), to, l.Log) + `],"failure":[` + get(k.home(session)) + "]}"
}

// Renew hangs the session on another lease if the address is its home, else asks for the one it has.
func (k Keys) Renew(session, address string, l Leases) string {
	return k.ifHome(session, address) + `"success":[{"requestPut":{` + field("key", k.home(session)) +
		`,"ignore_value":true,"lease":"` + decimal(l.Session) + `"}},` + put(k.held(address, session), "", l.Session) +
		`],"failure":[` + get(k.home(session)) + "]}"
}

// Release ends the session if the address is its home, else asks for the one it has.
func (k Keys) Release(session, address string, l Leases) string {
	return k.ifHome(session, address) + `"success":[` + remove(k.home(session)) + "," + remove(k.held(address, session)) + "," +
		put(k.change(session), "", l.Log) + `],"failure":[` + get(k.home(session)) + "]}"
}

// Drain begins or ends the drain of the address at every gateway. It stays until it is ended.
func (k Keys) Drain(address string, drained bool) string {
	return `{"success":[` + put(k.drain(address), strconv.FormatBool(drained), 0) + "]}"
}

// Reset ends all sessions.
func (k Keys) Reset() string {
	return `{"success":[` + removeBelow(k.Root+"s/") + "," + removeBelow(k.Root+"r/") + "," + removeBelow(k.Root+"f/") + "," +
		put(k.Root+reset, "", 0) + "]}"
}

// MaxCounts bounds the addresses of one Poll: etcd takes 128 operations in a transaction (--max-txn-ops).
const MaxCounts = 120

// Poll asks for what has changed after that revision, and for the number of sessions that have each address for their home.
// Of changes of homes it asks only after a revision above 0: who knows no session has nothing to correct.
func (k Keys) Poll(after int64, addresses []string) string {
	since, log := `,"min_mod_revision":"`+decimal(after+1)+`"}}`, below(k.Root+"f/")
	if after == 0 {
		log += `,"limit":"1"`
	}
	text := `{"success":[{"requestRange":{` + log + since + `,{"requestRange":{` + below(k.Root+orders) + since
	for _, address := range addresses {
		text += `,{"requestRange":{` + below(k.held(address, "")) + `,"count_only":true}}`
	}
	return text + "]}"
}

// Grant makes a lease of that id, of ttl seconds.
func Grant(id, ttl int64) string { return `{"ID":"` + decimal(id) + `","TTL":"` + decimal(ttl) + `"}` }

// Authenticate asks for a token. Both are JSON strings.
func Authenticate(name, password string) string {
	return `{"name":` + name + `,"password":` + password + "}"
}

func (k Keys) ifHome(session, address string) string {
	return `{"compare":[{"target":"VALUE",` + field("key", k.home(session)) + "," + field("value", address) + "}],"
}

func put(key, value string, lease int64) string {
	text := `{"requestPut":{` + field("key", key)
	if value != "" {
		text += "," + field("value", value)
	}
	if lease != 0 {
		text += `,"lease":"` + decimal(lease) + `"`
	}
	return text + "}}"
}

func get(key string) string { return `{"requestRange":{` + field("key", key) + "}}" }

func remove(key string) string { return `{"requestDeleteRange":{` + field("key", key) + "}}" }

func removeBelow(prefix string) string { return `{"requestDeleteRange":{` + below(prefix) + "}}" }

// below names all keys that begin with the prefix, which ends with "/".
func below(prefix string) string {
	const after = "0" // the character behind "/"
	return field("key", prefix) + "," + field("range_end", prefix[:len(prefix)-1]+after)
}

// field is bytes: etcd takes them in the standard alphabet of base64, padded.
func field(name, value string) string {
	return `"` + name + `":"` + base64.StdEncoding.EncodeToString([]byte(value)) + `"`
}

//go:noinline
func decimal(n int64) string { return strconv.FormatInt(n, 10) }
