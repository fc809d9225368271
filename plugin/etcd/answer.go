package etcd

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// Code is the gRPC code of an error in etcd's answer; OK is none. Its HTTP status differs between versions.
type Code int

const (
	OK Code = 0
	// Cancelled: etcd ends.
	Cancelled Code = 1
	// BadArgument: also a wrong password, or no token where one is needed.
	BadArgument Code = 3
	// NotFound: there is no such lease.
	NotFound Code = 5
	// Denied: the user's role does not have the key.
	Denied Code = 7
	// Exists: there is such a lease already. (3.4 says 9, failed precondition.)
	Exists Code = 9
	// Unavailable: no leader, or too much to do.
	Unavailable Code = 14
	// Unauthenticated: the token is not known, or not any more.
	Unauthenticated Code = 16
	// NoAnswer is none of gRPC's: what came is not etcd's.
	NoAnswer Code = -1
)

// Answer is an answer to a request. It refers to the text that it was read from.
type Answer struct {
	Code Code
	// Message is etcd's, of an error.
	Message string
	// Cluster is etcd's id, and Revision its own when it answered.
	Cluster  uint64
	Revision int64
	// Succeeded says that a transaction's compare held.
	Succeeded bool
	// Home is the session's, where one was asked for; "" is none. Lease is what it hangs on.
	Home  string
	Lease int64
	// Token is the answer to Authenticate.
	Token string

	responses json.Result
}

// Read reads the answer with that HTTP status.
func Read(status, body string) (a Answer) {
	if !json.Valid([]byte(body)) {
		return Answer{Code: NoAnswer, Message: "HTTP status " + status}
	}
	v := json.Parse(body)
	if status != "200" {
		a = Answer{Code: Code(v.Get("code").Int()), Message: v.Get("message").Str}
		if a.Code == OK {
			a.Code, a.Message = NoAnswer, "HTTP status "+status
		}
		return a
	}
	v.ForEach(func(key, value json.Result) bool {
		switch key.Str {
		case "header":
			a.Revision = integer(value.Get("revision"))
			a.Cluster, _ = strconv.ParseUint(value.Get("cluster_id").Str, 10, 64)
		case "succeeded":
			a.Succeeded = value.Bool()
		case "token":
			a.Token = value.Str
		case "responses":
			a.responses = value
		}
		return true
	})
	if !a.Succeeded {
		a.readHome()
	}
	return a
}

func (a *Answer) readHome() {
	a.responses.ForEach(func(_, response json.Result) bool {
		response.Get("response_range.kvs").ForEach(func(_, kv json.Result) bool {
			a.Home, a.Lease = bytes(kv.Get("value")), integer(kv.Get("lease"))
			return false
		})
		return false
	})
}

// Change is an entry of the change log.
type Change struct {
	// Session is the one whose home changed, or "".
	Session string
	// Home is its new one, "" if it was released.
	Home string
	// Drained is the address whose drain began (Begins) or ended, or "".
	Drained string
	Begins  bool
	// Reset says that all sessions were ended.
	Reset bool
	// Revision is that of the change.
	Revision int64
}

// Polled hands the answer to a Poll to change and count: each change, in no order, and the number of sessions at the address
// with that position. It is false if the answer is none to a Poll of that many addresses.
func (k Keys) Polled(a Answer, addresses int, change func(Change), count func(i int, sessions uint32)) bool {
	n := 0
	a.responses.ForEach(func(_, response json.Result) bool {
		r := response.Get("response_range")
		if n++; n > 2 {
			if n-3 < addresses {
				count(n-3, uint32(integer(r.Get("count"))))
			}
			return true
		}
		r.Get("kvs").ForEach(func(_, kv json.Result) bool {
			key, value := bytes(kv.Get("key")), bytes(kv.Get("value"))
			key, _ = strings.CutPrefix(key, k.Root)
			c := Change{Revision: integer(kv.Get("mod_revision"))}
			if session, ok := strings.CutPrefix(key, "f/"); ok {
				c.Session, c.Home = session, value
			} else if address, ok := strings.CutPrefix(key, drains); ok {
				c.Drained, c.Begins = address, value == "true"
			} else if c.Reset = key == reset; !c.Reset {
				return true
			}
			change(c)
			return true
		})
		return true
	})
	return n == 2+addresses && a.Revision > 0
}

// integer reads an int64, which JSON has as a string.
func integer(v json.Result) int64 {
	text := v.Str
	if v.Type == json.Number {
		text = v.Raw
	}
	n, _ := strconv.ParseInt(text, 10, 64) // what is no number is absent, and absent is 0
	return n
}

func bytes(v json.Result) string {
	b, err := base64.StdEncoding.DecodeString(v.Str)
	if err != nil {
		return ""
	}
	return string(b)
}
