package etcd

import (
	"strconv"
	"strings"
	"time"
)

// User is who may authenticate once EnableAuth has been called.
type User struct {
	Password string
	// Root is allowed everything.
	Root bool
	// Prefixes are what all keys begin with that the user may read and write. None means no key. An empty one means all.
	Prefixes []string
}

// tokenLife is how long a token lasts after its last use. Source: etcd's auth/simple_token.go.
const tokenLife = 300 * time.Second

type token struct {
	text, user string
	// expiry is by the server's clock.
	expiry time.Duration
}

// EnableAuth switches authentication on, with these users by name and no others; nil switches it off. Tokens that were
// handed out before are worth nothing.
func (s *Server) EnableAuth(users map[string]User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users, s.tokens = nil, nil
	if users == nil {
		return
	}
	s.users = map[string]User{}
	for name, user := range users {
		user.Prefixes = append([]string(nil), user.Prefixes...)
		s.users[name] = user
	}
}

func (s *Server) authenticate(m *message) ([]byte, *refusal) {
	name, password := m.text(0), m.text(1)
	if m.failed {
		return nil, malformed
	}
	if s.users == nil {
		return nil, authNotEnabled
	}
	user, ok := s.users[name]
	if !ok || user.Password != password {
		return nil, authFailed
	}
	s.lastToken++
	// As etcd's: sixteen letters, a dot and a number.
	letters := []byte("AAAAAAAAAAAAAAAA")
	for i, n := len(letters)-1, s.lastToken; n > 0; i, n = i-1, n/26 {
		letters[i] += byte(n % 26)
	}
	text := string(letters) + "." + strconv.FormatInt(s.lastToken, 10)
	s.tokens = append(s.tokens, token{text, name, s.now + tokenLife})
	return append(append(append(s.beginReply(), `,"token":"`...), text...), `"}`...), nil
}

// checkToken refuses a token that is not good, and settles the request's user. A request without any has none.
func (s *Server) checkToken() *refusal {
	s.user = nil
	if s.users == nil || !s.hasAuthorization {
		return nil
	}
	for i := range s.tokens {
		if t := &s.tokens[i]; t.text == s.authorization && s.now < t.expiry {
			user := s.users[t.user]
			s.user, t.expiry = &user, s.now+tokenLife
			return nil
		}
	}
	return invalidToken
}

// permit refuses what the request's user may not do with a range of keys: to read and to write are one right here.
func (s *Server) permit(key, end string) *refusal {
	switch {
	case s.users == nil:
		return nil
	case s.user == nil:
		return userEmpty
	case s.user.Root || s.user.covers(key, end):
		return nil
	}
	return notPermitted
}

// covers reports whether the user's prefixes cover all of a range of keys, next to each other though they be.
func (u *User) covers(key, end string) bool {
	for at, endless := key, end == "\x00"; ; {
		next, ok := "", false
		for _, prefix := range u.Prefixes {
			if !strings.HasPrefix(at, prefix) {
				continue
			}
			if end == "" {
				return true
			}
			behind, bounded := prefixEnd(prefix)
			if !bounded {
				return true
			}
			next, ok = max(next, behind), true
		}
		if !ok {
			return false
		}
		if !endless && next >= end {
			return true
		}
		at = next
	}
}

// prefixEnd returns the first key behind all that begin with prefix, or false if there is none.
func prefixEnd(prefix string) (string, bool) {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1}), true
		}
	}
	return "", false
}

// permitTxn looks at all that a transaction may do. As in etcd 3.4 the operations of nested ones are not looked at.
func (s *Server) permitTxn(t *txnRequest) *refusal {
	for i := range t.compares {
		if no := s.permit(t.compares[i].key, t.compares[i].end); no != nil {
			return no
		}
	}
	for _, ops := range [][]op{t.success, t.failure} {
		for i := range ops {
			var no *refusal
			switch o := &ops[i]; o.kind {
			case opRange:
				no = s.permit(o.read.key, o.read.end)
			case opPut:
				no = s.permit(o.put.key, "")
			case opDelete:
				no = s.permit(o.delete.key, o.delete.end)
			}
			if no != nil {
				return no
			}
		}
	}
	return nil
}

// checkLeaseKeys refuses to touch a lease that has a key which the request's user may not write.
func (s *Server) checkLeaseKeys(id int64) *refusal {
	if s.users == nil || id == 0 {
		return nil
	}
	for _, kv := range s.store.keys {
		if kv.lease == id {
			if no := s.permit(kv.key, ""); no != nil {
				return no
			}
		}
	}
	return nil
}
