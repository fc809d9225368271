package hostsim

import (
	"errors"
	"testing"
)

// The plugin hears how many pairs there are, and no map has them. Its answer does not count.
func TestMetadata(t *testing.T) {
	p := newProbe(t, `
		request_metadata pairs 0
		request_metadata return 1
		response_metadata get 2 :status
		response_metadata return 4`)
	s := p.Worker(0).NewStream()
	if _, err := s.RequestMetadata(nil); !errors.Is(err, ErrOrder) {
		t.Errorf("err %v before the headers", err)
	}
	step, err := s.RequestHeaders(get, false)
	ok(t, err)
	step, err = s.RequestMetadata(Headers{{"a", "b"}, {"c", "d"}})
	ok(t, err)
	if step.Flow != Forward || step.Data != nil || step.End {
		t.Errorf("step %+v", step)
	}
	_, err = s.ResponseHeaders(reply, false)
	ok(t, err)
	_, err = s.ResponseMetadata(Headers{{"a", "b"}})
	ok(t, err)
	_, err = s.ResponseBody(nil, true)
	ok(t, err)
	if _, err = s.ResponseMetadata(nil); !errors.Is(err, ErrOrder) {
		t.Errorf("err %v after the end", err)
	}
	p.expect(`> context_create 2 1
		> request_headers 2 3 0
		> request_metadata 2 2
		pairs 0 = 0
		> response_headers 2 1 0
		> response_metadata 2 1
		get 2 :status = 2
		> response_body 2 0 1`)
}

// While the stream stands still, frames wait in front of the body.
func TestMetadataWaits(t *testing.T) {
	p := newProbe(t, "request_headers return 1\nresponse_headers continue 0")
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, false)
	ok(t, err)
	_, err = s.RequestMetadata(Headers{{"a", "b"}})
	ok(t, err)
	_, err = s.RequestBody([]byte("xyz"), false)
	ok(t, err)
	_, err = s.RequestMetadata(nil)
	ok(t, err)
	p.expect("> context_create 2 1\n> request_headers 2 3 0")
	_, err = s.ResponseHeaders(reply, true)
	ok(t, err)
	p.expect(`> response_headers 2 1 1
		continue 0 = 0
		> request_metadata 2 1
		> request_metadata 2 0
		> request_body 2 3 0`)
}
