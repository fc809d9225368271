package hostsim

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// calling makes one host call in a request's headers callback and returns its status.
func calling(t *testing.T, h *Host, name string, args ...uint64) Status {
	t.Helper()
	h.script(0, 0, []scriptCall{{scriptIndex(name), args}})
	s := h.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	status := h.result(0)
	h.script(0, 0, nil)
	ok(t, s.End(EndNormal))
	return status
}

const (
	end     = 0x10000 // where the script guest's memory ends
	largest = 0xffffffff
	garbage = 0xdeadbeef_00000000 // in the upper half of a 32-bit argument, where it means nothing
)

// Addresses and sizes that are not in the module's memory are refused, whatever they add up to.
func TestPointersOutsideMemory(t *testing.T) {
	h := newScriptHost(t)
	for _, tt := range []struct {
		name string
		args []uint64
		want Status
	}{
		{"proxy_log", []uint64{2, scriptFree, 4}, StatusOK},
		{"proxy_log", []uint64{garbage | 2, garbage | scriptFree, garbage | 4}, StatusOK},
		{"proxy_log", []uint64{2, end - 4, 4}, StatusOK},
		{"proxy_log", []uint64{2, end - 4, 5}, StatusInvalidMemoryAccess},
		{"proxy_log", []uint64{2, end, 0}, StatusOK}, // nothing is read
		{"proxy_log", []uint64{2, largest, 1}, StatusInvalidMemoryAccess},
		{"proxy_log", []uint64{2, 16, largest}, StatusInvalidMemoryAccess}, // a negative size
		{"proxy_log", []uint64{2, largest, largest}, StatusInvalidMemoryAccess},
		{"proxy_get_buffer_bytes", []uint64{6, 0, largest, scriptFree, end - 3}, StatusInvalidMemoryAccess},
		{"proxy_get_buffer_bytes", []uint64{6, 0, largest, largest, scriptFree}, StatusInvalidMemoryAccess},
		{"proxy_get_buffer_bytes", []uint64{6, largest, largest, scriptFree, scriptFree + 4}, StatusOK},
		{"proxy_get_shared_data", []uint64{scriptFree, largest, scriptFree, scriptFree, scriptFree}, StatusInvalidMemoryAccess},
		{"proxy_set_shared_data", []uint64{scriptFree, 1, 1, largest, 0}, StatusInvalidMemoryAccess},
		{"proxy_set_header_map_pairs", []uint64{0, end, 1}, StatusInvalidMemoryAccess},
		{"proxy_get_header_map_pairs", []uint64{0, largest, 0}, StatusInvalidMemoryAccess},
		{"proxy_define_metric", []uint64{0, scriptFree, 1, end - 2}, StatusInvalidMemoryAccess},
		{"proxy_get_current_time_nanoseconds", []uint64{end - 7}, StatusInvalidMemoryAccess},
		{"proxy_send_local_response", []uint64{200, 0, 0, scriptFree, largest, 0, 0, largest}, StatusInvalidMemoryAccess},
		{"proxy_http_call", []uint64{scriptFree, 1, scriptFree, largest, 0, 0, 0, 0, 0, scriptFree}, StatusInvalidMemoryAccess},
		{"proxy_set_property", []uint64{largest, 2, 0, 0}, StatusInvalidMemoryAccess},
		{"random_get", []uint64{end - 4, 8}, errnoFault},
		{"fd_write", []uint64{1, end - 4, 1, scriptFree}, errnoFault},
		{"environ_get", []uint64{largest, scriptFree}, errnoFault},
		{"clock_time_get", []uint64{1, 0, largest}, errnoFault},
	} {
		if got := calling(t, h, tt.name, tt.args...); got != tt.want {
			t.Errorf("%s%x: %v, want %v", tt.name, tt.args, got, tt.want)
		}
	}
}

// What malloc answers is not trusted.
func TestAllocatorsThatAnswerGarbage(t *testing.T) {
	for _, tt := range []struct {
		answer uint32
		want   Status
	}{
		{0, StatusInvalidMemoryAccess},
		{largest, StatusInvalidMemoryAccess},
		{end, StatusInvalidMemoryAccess},
		{end - 1, StatusInvalidMemoryAccess},
		{callScript, StatusOK}, // over what it holds itself: its own loss
	} {
		h := newScriptHost(t)
		h.mallocs(0, tt.answer, nil)
		s := h.Worker(0).NewStream()
		h.script(0, 0, []scriptCall{{scriptIndex("proxy_get_buffer_bytes"), []uint64{6, 0, 100, scriptFree, scriptFree + 4}}})
		h.mallocs(0, tt.answer, nil)
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
		if got := h.result(0); got != tt.want {
			t.Errorf("malloc answers %#x: %v, want %v", tt.answer, got, tt.want)
		}
	}
}

// A memory that moves while it grows, in the allocator and so in the middle of a host call, gets what the call hands over.
func TestMemoryThatGrowsInTheAllocator(t *testing.T) {
	h := newScriptHost(t)
	s := h.Worker(0).NewStream()
	h.script(0, 0, []scriptCall{{scriptIndex("proxy_get_header_map_value"), []uint64{0, scriptFree, 5, scriptFree + 16, scriptFree + 20}}})
	grow := scriptCall{number: uint32(len(scriptFuncs())) + 1}
	h.mallocs(0, end+16, []scriptCall{grow, grow, grow})
	mem := h.workers[0].vm.mem
	mem.WriteString(scriptFree, ":path")
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	value, _ := mem.Read(end+16, 6)
	if got := h.result(0); got != StatusOK || string(value) != "/a?b=c" || mem.Size() != 4*pageSize {
		t.Errorf("%v, %q in %d bytes", got, value, mem.Size())
	}
}

// A module that calls itself through the host ends before the process's stack does.
func TestAllocatorThatNeedsTheAllocator(t *testing.T) {
	m := minimal()
	m.importing("proxy_get_buffer_bytes")
	m.funcs[1].body = slices.Concat(i32s(6, 0, 100, 0, 4), callOf(0), drop, i32s(1024))
	readsConfig(m)
	err := lifetime(t, Config{Wasm: m.bytes(), Profile: Permissive(), VMConfig: []byte("x")})
	var trap *TrapError
	if !errors.As(err, &trap) || !errors.Is(err, ErrStack) || !strings.HasPrefix(trap.Reason, "in malloc: in malloc: ") || len(err.Error()) > 20_000 {
		t.Errorf("err %v", err)
	}
	err = lifetime(t, Config{Wasm: m.bytes(), VMConfig: []byte("x")})
	checkTrap(t, "proxy_on_configure", err, nil, "in malloc: env.proxy_get_buffer_bytes is not allowed during memory allocation")
}

// A write of many parts that all are the same memory is refused before it is as large as it says.
func TestWriteOfOverlappingParts(t *testing.T) {
	h := newScriptHost(t)
	mem := h.workers[0].vm.mem
	for i := range uint32(4000) {
		mem.WriteUint32Le(scriptFree+8*i, 0)
		mem.WriteUint32Le(scriptFree+8*i+4, end)
	}
	if got := calling(t, h, "fd_write", 1, scriptFree, 4000, 0); got != errnoInval {
		t.Errorf("errno %d", got)
	}
}

// Header lists over the limits, or with sizes that are not theirs, are empty lists.
func TestHugeHeaderLists(t *testing.T) {
	many, large := make(Headers, maxPairs+1), Headers{{"a", strings.Repeat("x", maxPairsSize)}}
	for i := range many {
		many[i] = [2]string{"a", "b"}
	}
	liar := encodePairs(Headers{{"a", "b"}})
	liar[0], liar[1], liar[2], liar[3] = 0xff, 0xff, 0xff, 0xff
	negative := encodePairs(Headers{{"a", "b"}})
	negative[4], negative[5], negative[6], negative[7] = 0xff, 0xff, 0xff, 0xff
	for name, data := range map[string][]byte{"many": encodePairs(many), "large": encodePairs(large), "liar": liar, "negative": negative, "short": {1, 0, 0}} {
		if got := decodePairs(data); len(got) != 0 {
			t.Errorf("%s: %d pairs", name, len(got))
		}
	}
	if got := decodePairs(encodePairs(many[:maxPairs])); len(got) != maxPairs {
		t.Errorf("%d pairs at the limit", len(got))
	}
}
