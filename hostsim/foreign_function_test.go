package hostsim

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestForeignFunctions(t *testing.T) {
	var seen []string
	p := newProbe(t, `
		request_headers foreign nothing x
		request_headers foreign upper text
		request_headers foreignquiet upper text
		request_headers foreign fails text
		request_headers foreign none ~
		request_headers foreign gone x
		request_headers foreign clear_route_cache x
		request_headers foreign uncompress junk`, func(c *Config) {
		c.ForeignFunctions = map[string]ForeignFunction{
			"upper": func(worker int, a []byte) ([]byte, Status) {
				seen = append(seen, string(a))
				return bytes.ToUpper(a), StatusOK
			},
			// A result goes to the plugin whatever the status; the probe shows only the status then.
			"fails":    func(int, []byte) ([]byte, Status) { return []byte("why"), StatusBadExpression },
			"none":     func(_ int, a []byte) ([]byte, Status) { return a, StatusOK },
			"compress": nil,
			"gone":     nil,
		}
	})
	p.pass()
	p.results(`foreign nothing x = 1
		foreign upper text = 0 TEXT
		foreignquiet upper text = 0
		foreign fails text = 5
		foreign none ~ = 0
		foreign gone x = 1
		foreign clear_route_cache x = 0
		foreign uncompress junk = 3`)
	if strings.Join(seen, " ") != "text text" {
		t.Errorf("arguments %q", seen)
	}
}

// A result that is not asked for costs the module no memory.
func TestForeignFunctionWithoutResult(t *testing.T) {
	allocations := func(op string) uint64 {
		p := newProbe(t, "request_headers "+op+" compress text")
		before := p.Counters().Callbacks["proxy_on_memory_allocate"]
		p.pass()
		return p.Counters().Callbacks["proxy_on_memory_allocate"] - before
	}
	if quiet, loud := allocations("foreignquiet"), allocations("foreign"); quiet != 0 || loud != 1 {
		t.Errorf("%d allocations without a result, %d with one", quiet, loud)
	}
}

func TestCompress(t *testing.T) {
	all := EnvoyForeignFunctions()
	text := bytes.Repeat([]byte("abc"), 1000)
	packed, st := all["compress"](0, text)
	if st != StatusOK || len(packed) > 100 {
		t.Fatalf("%v, %d bytes", st, len(packed))
	}
	if got, st := all["uncompress"](0, packed); st != StatusOK || !bytes.Equal(got, text) {
		t.Errorf("%v, %d bytes", st, len(got))
	}
	if _, st := all["uncompress"](0, packed[:len(packed)-1]); st != StatusSerializationFailure {
		t.Errorf("a part: %v", st)
	}
	bomb, _ := all["compress"](0, make([]byte, maxUncompressed+1))
	if _, st := all["uncompress"](0, bomb); st != StatusSerializationFailure {
		t.Errorf("too much: %v", st)
	}
}

func TestCallForeignFunction(t *testing.T) {
	p := newProbe(t, "foreign_function buf 8 0 100\nforeign_function bufset 8 0 0 x\nforeign_function when 2 panic boom\nrequest_headers buf 8 0 9")
	ok(t, p.Worker(0).CallForeignFunction(7, []byte("argument")))
	p.expect("> foreign_function 1 7 8\nbuf 8 0 100 = 0 argument\nbufset 8 0 0 x = 2")
	p.pass()
	p.results("buf 8 0 9 = 0")
	if err := p.Worker(0).CallForeignFunction(7, nil); !errors.Is(err, ErrTrap) {
		t.Errorf("err %v", err)
	}
	if err := p.Worker(0).CallForeignFunction(7, nil); !errors.Is(err, ErrTrap) {
		t.Errorf("err %v on a dead virtual machine", err)
	}
}
