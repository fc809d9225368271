package etcd

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzHandle holds that no body of any path makes the server panic, that what it answers is JSON, and that only a request
// that succeeds changes anything.
func FuzzHandle(f *testing.F) {
	paths := []string{rangePath, putPath, deletePath, txnPath, grantPath, revokePath, ttlPath, alivePath, authPath, "/", ""}
	for _, body := range []string{
		createTxn, `{"key":"YQ==","range_end":"AA==","limit":1,"sort_target":"VALUE","sort_order":2,"min_mod_revision":"2"}`,
		`{"key":[97],"value":"eA==","ignore_value":true,"prevKv":true}`, `{"ID":"5","TTL":5,"keys":true}{"ID":5}`, `{"name":"root","password":"p"}`,
		`{"success":[{"request_txn":{"success":[{"requestDeleteRange":{"key":"YQ==","rangeEnd":"AA=="}},{"requestPut":{"key":"YQ==","ignore_value":true}}]}}]}`,
		`{"success":[{"requestPut":{"key":"Yg=="}},{"requestRange":{"key":"YQ==","revision":2,"range_end":"AA=="}}]}`,
		`{"compare":[{"key":"YQ==","target":3,"value":null}],"failure":[null]}`, `"\u00`, `[[`, `nul`, `-`, `{"a":}`, `{"\u006bey":"YQ=="}`, ``,
	} {
		for i := range paths {
			f.Add(uint8(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, path uint8, body []byte) {
		s := New()
		s.EnableAuth(map[string]User{"root": {Password: "p", Root: true}})
		if path&0x80 == 0 {
			s.EnableAuth(nil)
		}
		post(s, grantPath, `{"ID":5,"TTL":5}`)
		post(s, putPath, `{"key":"YQ==","value":"eA==","lease":5}`)
		before := s.Revision()
		status, reply := s.Handle("POST", paths[int(path&0x7f)%len(paths)], nil, body)
		if status != 200 && s.Revision() != before {
			t.Errorf("answered %d, and yet the revision is %d", status, s.Revision())
		}
		if status == 0 || len(reply) > 0 && reply[0] == '{' {
			for d := json.NewDecoder(bytes.NewReader(reply)); d.More(); {
				if err := d.Decode(new(any)); err != nil {
					t.Fatalf("%s: %v", reply, err)
				}
			}
		}
	})
}

// FuzzValue holds the scanner of JSON against encoding/json's.
func FuzzValue(f *testing.F) {
	for _, text := range []string{createTxn, ` [1, -0.5e+7, "\ud800\n", {"a" : [ ]}] x`, `01`, `1.`, `"\u12g4"`, "\"\x01\"", `{"a":1,}`, `[,]`, `tru`, `-`, `1e`, ``} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want json.RawMessage
		err := json.NewDecoder(bytes.NewReader(text)).Decode(&want)
		got, _, ok := cutValue(text)
		if blank := skipSpace(text, 0) == len(text); ok != (err == nil || blank) {
			t.Fatalf("%q: %v, want %v", text, ok, err)
		}
		if ok && !bytes.Equal(got, want) {
			t.Fatalf("%q: value %q, want %q", text, got, want)
		}
	})
}
