package etcd

// What etcd's .proto files call RangeRequest, PutRequest and so on. Source: etcd 3.4, etcdserver/etcdserverpb/rpc.proto.

type rangeRequest struct {
	key, end              string
	limit, revision       int64
	sortOrder, sortTarget int32
	keysOnly, countOnly   bool
	minMod, maxMod        int64
	minCreate, maxCreate  int64
}

type putRequest struct {
	key, value                       string
	lease                            int64
	prevKV, ignoreValue, ignoreLease bool
}

type deleteRequest struct {
	key, end string
	prevKV   bool
}

// compare is one condition of a transaction. Of the values to compare with it has the one of its target's type, and none is
// zero: a condition on VALUE with only a create_revision compares with an empty value.
type compare struct {
	result, target int32
	key, end       string
	value          string
	number         int64
}

const (
	targetVersion = iota
	targetCreate
	targetMod
	targetValue
	targetLease
)

const (
	equal = iota
	greater
	less
	notEqual
)

type opKind uint8

const (
	opNone opKind = iota
	opRange
	opPut
	opDelete
	opTxn
)

// op is one operation of a transaction.
type op struct {
	kind   opKind
	read   rangeRequest
	put    putRequest
	delete deleteRequest
	txn    *txnRequest
}

type txnRequest struct {
	compares         []compare
	success, failure []op
	// succeeded is what came of compares.
	succeeded bool
	// hole is set if a list has a null in it.
	hole bool
}

var (
	rangeFields = []field{
		{"key", "key"}, {"range_end", "rangeEnd"}, {"limit", "limit"}, {"revision", "revision"}, {"sort_order", "sortOrder"},
		{"sort_target", "sortTarget"}, {"serializable", "serializable"}, {"keys_only", "keysOnly"}, {"count_only", "countOnly"},
		{"min_mod_revision", "minModRevision"}, {"max_mod_revision", "maxModRevision"},
		{"min_create_revision", "minCreateRevision"}, {"max_create_revision", "maxCreateRevision"},
	}
	putFields = []field{
		{"key", "key"}, {"value", "value"}, {"lease", "lease"}, {"prev_kv", "prevKv"}, {"ignore_value", "ignoreValue"},
		{"ignore_lease", "ignoreLease"},
	}
	deleteFields  = []field{{"key", "key"}, {"range_end", "rangeEnd"}, {"prev_kv", "prevKv"}}
	compareFields = []field{
		{"result", "result"}, {"target", "target"}, {"key", "key"}, {"range_end", "rangeEnd"}, {"target_union", "target_union"},
		{"version", "version"}, {"create_revision", "createRevision"}, {"mod_revision", "modRevision"}, {"value", "value"},
		{"lease", "lease"},
	}
	opFields = []field{
		{"request", "request"}, {"request_range", "requestRange"}, {"request_put", "requestPut"},
		{"request_delete_range", "requestDeleteRange"}, {"request_txn", "requestTxn"},
	}
	txnFields          = []field{{"compare", "compare"}, {"success", "success"}, {"failure", "failure"}}
	grantFields        = []field{{"TTL", "TTL"}, {"ID", "ID"}}
	leaseFields        = []field{{"ID", "ID"}, {"keys", "keys"}}
	authenticateFields = []field{{"name", "name"}, {"password", "password"}}
)

func parseRange(raw []byte) (r rangeRequest, ok bool) {
	var m message
	parseMessage(&m, raw, rangeFields)
	r = rangeRequest{
		key: m.bytes(0), end: m.bytes(1), limit: m.int64(2), revision: m.int64(3), sortOrder: m.enum(4, "NONE", "ASCEND", "DESCEND"),
		sortTarget: m.enum(5, "KEY", "VERSION", "CREATE", "MOD", "VALUE"), keysOnly: m.bool(7), countOnly: m.bool(8),
		minMod: m.int64(9), maxMod: m.int64(10), minCreate: m.int64(11), maxCreate: m.int64(12),
	}
	m.bool(6) // a single server's serializable reads are those of any other
	return r, !m.failed
}

func parsePut(raw []byte) (r putRequest, ok bool) {
	var m message
	parseMessage(&m, raw, putFields)
	r = putRequest{
		key: m.bytes(0), value: m.bytes(1), lease: m.int64(2), prevKV: m.bool(3), ignoreValue: m.bool(4), ignoreLease: m.bool(5),
	}
	return r, !m.failed
}

func parseDelete(raw []byte) (r deleteRequest, ok bool) {
	var m message
	parseMessage(&m, raw, deleteFields)
	r = deleteRequest{key: m.bytes(0), end: m.bytes(1), prevKV: m.bool(2)}
	return r, !m.failed
}

func parseCompare(raw []byte) (c compare, ok bool) {
	var m message
	parseMessage(&m, raw, compareFields)
	c = compare{
		result: m.enum(0, "EQUAL", "GREATER", "LESS", "NOT_EQUAL"), target: m.enum(1, "VERSION", "CREATE", "MOD", "VALUE", "LEASE"),
		key: m.bytes(2), end: m.bytes(3),
	}
	m.failed = m.failed || !m.null(4)
	// etcd keeps one of several values, taken in the random order of a Go map: here it is the last one of the list.
	numbers := [...]int64{targetVersion: m.int64(5), targetCreate: m.int64(6), targetMod: m.int64(7), targetLease: m.int64(9)}
	value := m.bytes(8)
	last := int32(-1)
	for n, target := range [...]int32{5: targetVersion, 6: targetCreate, 7: targetMod, 8: targetValue, 9: targetLease} {
		if n >= 5 && m.has(n) {
			last = target
		}
	}
	if last == c.target && last == targetValue {
		c.value = value
	} else if last == c.target {
		c.number = numbers[last]
	}
	return c, !m.failed
}

func parseOp(raw []byte) (o op, ok bool) {
	var m message
	parseMessage(&m, raw, opFields)
	ok = !m.failed && m.null(0)
	for kind := opRange; ok && kind <= opTxn; kind++ {
		if !m.has(int(kind)) {
			continue
		}
		// As with the values of a compare, of several operations in one the last one counts here; null is none.
		if o.kind = kind; m.null(int(kind)) {
			o.kind = opNone
			continue
		}
		switch value := m.values[kind]; kind {
		case opRange:
			o.read, ok = parseRange(value)
		case opPut:
			o.put, ok = parsePut(value)
		case opDelete:
			o.delete, ok = parseDelete(value)
		case opTxn:
			o.txn, ok = parseTxn(value)
		}
	}
	return o, ok
}

func parseTxn(raw []byte) (t *txnRequest, ok bool) {
	var m message
	parseMessage(&m, raw, txnFields)
	t = &txnRequest{}
	m.list(0, func(raw []byte) {
		c, ok := parseCompare(raw)
		t.compares, t.hole, m.failed = append(t.compares, c), t.hole || raw[0] == 'n', m.failed || !ok
	})
	for n, ops := range []*[]op{1: &t.success, 2: &t.failure} {
		if n == 0 {
			continue
		}
		m.list(n, func(raw []byte) {
			o, ok := parseOp(raw)
			*ops, m.failed = append(*ops, o), m.failed || !ok
			t.hole = t.hole || raw[0] == 'n' || o.kind == opTxn && o.txn.hole
		})
	}
	return t, !m.failed
}
