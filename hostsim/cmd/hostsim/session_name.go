package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// sessionNames tells sessions apart without telling who they are: an id becomes the first 8 hex digits of its hash under a
// key of this process. Ids may hold users' names or secrets, and a log goes further than its reader thinks.
type sessionNames struct {
	headers []string
	key     [32]byte
}

func newSessionNames(headers []string) *sessionNames {
	n := &sessionNames{headers: headers}
	_, _ = rand.Read(n.key[:]) // it cannot fail
	return n
}

// id is the session's own, of the first header that is not empty.
func (n *sessionNames) id(r *http.Request) string {
	for _, name := range n.headers {
		if id := r.Header.Get(name); id != "" {
			return id
		}
	}
	return ""
}

// hash is empty for a request without a session.
func (n *sessionNames) hash(r *http.Request) string {
	id := n.id(r)
	if id == "" {
		return ""
	}
	sum := sha256.Sum256(append(n.key[:len(n.key):len(n.key)], id...))
	return hex.EncodeToString(sum[:4])
}
