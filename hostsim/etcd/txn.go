package etcd

import (
	"cmp"
	"slices"
	"strings"
)

// maxOps is how many conditions a transaction may have, how many operations for each outcome, and, of those that are nested,
// the sum of the greatest on each level. Source: etcd's --max-txn-ops, 128 by default.
const maxOps = 128

// check is what etcd refuses without looking at any key.
func (t *txnRequest) check(limit int) *refusal {
	most := max(len(t.compares), len(t.success), len(t.failure))
	if most > limit {
		return tooManyOps
	}
	for i := range t.compares {
		if t.compares[i].key == "" {
			return emptyKey
		}
	}
	for _, ops := range [][]op{t.success, t.failure} {
		for i := range ops {
			if no := ops[i].check(limit - most); no != nil {
				return no
			}
		}
	}
	return nil
}

func (o *op) check(limit int) *refusal {
	switch o.kind {
	case opRange:
		return o.read.check()
	case opPut:
		return o.put.check()
	case opDelete:
		return o.delete.check()
	case opTxn:
		return o.txn.check(limit)
	}
	return keyNotFound
}

func (r *rangeRequest) check() *refusal {
	switch {
	case r.key == "":
		return emptyKey
	case r.sortTarget < sortKey || r.sortTarget > sortValue:
		return invalidSort
	}
	return nil
}

func (r *putRequest) check() *refusal {
	switch {
	case r.key == "":
		return emptyKey
	case r.ignoreValue && r.value != "":
		return valueProvided
	case r.ignoreLease && r.lease != 0:
		return leaseProvided
	}
	return nil
}

func (r *deleteRequest) check() *refusal {
	if r.key == "" {
		return emptyKey
	}
	return nil
}

// written is what a list of operations may put and delete.
type written struct {
	puts    []string
	deletes []*deleteRequest
}

// deleted reports whether key is in a range of deletes. It is never in one without an end, in etcd neither, so that such a
// transaction may put and delete the same key: the operations then act in their order.
func (w *written) deleted(key string) bool {
	return slices.ContainsFunc(w.deletes, func(d *deleteRequest) bool {
		return d.key == key && d.end == "" || d.key <= key && key < d.end
	})
}

// checkWrites finds a key that would be put twice, or put and deleted, in one transaction. As in etcd a nested transaction's
// puts are held against the deletes of this level and of the nested ones before it, not of those behind it.
func checkWrites(ops []op) (w written, no *refusal) {
	for i := range ops {
		if ops[i].kind == opDelete {
			w.deletes = append(w.deletes, &ops[i].delete)
		}
	}
	for i := range ops {
		if ops[i].kind != opTxn {
			continue
		}
		success, no := checkWrites(ops[i].txn.success)
		if no != nil {
			return w, no
		}
		failure, no := checkWrites(ops[i].txn.failure)
		if no != nil {
			return w, no
		}
		for _, key := range success.puts {
			if slices.Contains(w.puts, key) || w.deleted(key) {
				return w, duplicateKey
			}
			w.puts = append(w.puts, key)
		}
		for _, key := range failure.puts {
			both := slices.Contains(success.puts, key)
			if slices.Contains(w.puts, key) && !both || w.deleted(key) {
				return w, duplicateKey
			}
			if !both {
				w.puts = append(w.puts, key)
			}
		}
		w.deletes = append(append(w.deletes, success.deletes...), failure.deletes...)
	}
	for i := range ops {
		if ops[i].kind == opPut {
			key := ops[i].put.key
			if slices.Contains(w.puts, key) || w.deleted(key) {
				return w, duplicateKey
			}
			w.puts = append(w.puts, key)
		}
	}
	return w, nil
}

// holds reports whether a condition holds for all keys in its range. Where there is none it is held against zeros, but a
// condition on VALUE fails.
func (c *compare) holds(s *store) bool {
	from, to := span(s.keys, c.key, c.end)
	if from == to {
		return c.target != targetValue && c.holdsFor(&keyValue{})
	}
	for _, kv := range s.keys[from:to] {
		if !c.holdsFor(kv) {
			return false
		}
	}
	return true
}

func (c *compare) holdsFor(kv *keyValue) bool {
	order := 0
	switch c.target {
	case targetValue:
		order = strings.Compare(kv.value, c.value)
	case targetCreate:
		order = cmp.Compare(kv.create, c.number)
	case targetMod:
		order = cmp.Compare(kv.mod, c.number)
	case targetVersion:
		order = cmp.Compare(kv.version, c.number)
	case targetLease:
		order = cmp.Compare(kv.lease, c.number)
	}
	switch c.result {
	case equal:
		return order == 0
	case greater:
		return order > 0
	case less:
		return order < 0
	case notEqual:
		return order != 0
	}
	return true // as in etcd, whatever the unknown number means
}

// decide settles which operations a transaction carries out, those of nested ones included: before any of them acts.
func (t *txnRequest) decide(s *store) {
	t.succeeded = true
	for i := range t.compares {
		if !t.compares[i].holds(s) {
			t.succeeded = false
			break
		}
	}
	for _, o := range t.ops() {
		if o.kind == opTxn {
			o.txn.decide(s)
		}
	}
}

// ops are the operations that the transaction carries out.
func (t *txnRequest) ops() []op {
	if t.succeeded {
		return t.success
	}
	return t.failure
}

// each calls f with the operations that the transaction carries out, in their order, until f refuses one.
func (t *txnRequest) each(f func(*op) *refusal) *refusal {
	ops := t.ops()
	for i := range ops {
		if ops[i].kind == opTxn {
			if no := ops[i].txn.each(f); no != nil {
				return no
			}
		} else if no := f(&ops[i]); no != nil {
			return no
		}
	}
	return nil
}

// txn carries out a transaction, after check and checkWrites.
func (s *Server) txn(t *txnRequest) ([]byte, *refusal) {
	t.decide(&s.store)
	// All puts are looked at before any range.
	if no := t.each(func(o *op) *refusal {
		if o.kind != opPut {
			return nil
		}
		return s.checkPut(&o.put)
	}); no != nil {
		return nil, no
	}
	b := batch{store: &s.store}
	if no := t.each(func(o *op) *refusal {
		switch {
		case o.kind != opRange || o.read.revision == 0:
			return nil
		case o.read.revision > s.store.revision:
			return futureRevision
		case o.read.revision < s.store.revision:
			return compacted
		}
		if b.before == nil {
			b.before = slices.Clone(s.store.keys)
		}
		return nil
	}); no != nil {
		return nil, no
	}
	responses := s.apply(nil, t, &b)
	b.end()
	out := s.beginReply()
	if t.succeeded {
		out = append(out, `,"succeeded":true`...)
	}
	return append(append(out, responses...), '}'), nil
}

// checkPut is what etcd refuses in a transaction's put for what keys and leases there are.
func (s *Server) checkPut(r *putRequest) *refusal {
	if (r.ignoreValue || r.ignoreLease) && s.store.get(r.key) == nil {
		return keyNotFound
	}
	if r.lease != 0 && s.lease(r.lease) == nil {
		return leaseNotFound
	}
	return nil
}

// apply carries out the transaction's operations and appends their replies to out.
func (s *Server) apply(out []byte, t *txnRequest, b *batch) []byte {
	ops := t.ops()
	if len(ops) == 0 {
		return out
	}
	out = append(out, `,"responses":[`...)
	for i := range ops {
		if i > 0 {
			out = append(out, ',')
		}
		switch o := &ops[i]; o.kind {
		case opRange:
			out = appendRevision(append(out, `{"response_range":{"header":{`...), b.now())
			out = appendRange(append(out, '}'), b.read(&o.read), o.read.keysOnly)
		case opPut:
			old := b.get(o.put.key)
			b.write(&o.put, old)
			out = appendRevision(append(out, `{"response_put":{"header":{`...), b.now())
			out = appendPut(append(out, '}'), &o.put, old)
		case opDelete:
			var old []byte
			if o.delete.prevKV {
				old = appendPrevious(nil, b.store, &o.delete)
			}
			n := b.delete(o.delete.key, o.delete.end)
			out = appendRevision(append(out, `{"response_delete_range":{"header":{`...), b.now())
			out = append(appendInt(append(out, '}'), "deleted", int64(n)), old...)
		case opTxn:
			out = append(out, `{"response_txn":{"header":{}`...)
			if o.txn.succeeded {
				out = append(out, `,"succeeded":true`...)
			}
			out = s.apply(out, o.txn, b)
		}
		out = append(out, "}}"...)
	}
	return append(out, ']')
}

// write puts what the request says, or what the key has where it says to leave that alone.
func (b *batch) write(r *putRequest, old *keyValue) {
	value, lease := r.value, r.lease
	if r.ignoreValue && old != nil {
		value = old.value
	}
	if r.ignoreLease && old != nil {
		lease = old.lease
	}
	b.put(r.key, value, lease)
}
