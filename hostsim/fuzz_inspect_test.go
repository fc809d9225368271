package hostsim

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
)

// FuzzInspect reads damaged modules, and runs those that pass. The input is a small module or, where it is no module, a list
// of changes to a guest: for each what to do, the place, 4 bytes, and a byte to write there. Inspect and New agree, and
// neither panics nor hangs.
func FuzzInspect(f *testing.F) {
	f.Add(minimal().bytes())
	m := minimal()
	m.imports = []wasmImport{{module: "env", name: "x", other: []byte{2, 1, 1, 16}}}
	m.add("proxy_on_request_headers", "iii:i", i32s(0))
	f.Add(m.bytes())
	f.Add([]byte{0, 8, 0, 0, 0, 1})
	f.Add([]byte{1, 9, 0, 0, 0, 0xff, 200, 0, 0, 0, 7})
	f.Fuzz(func(t *testing.T, input []byte) {
		wasm := input
		if len(input) > 0 && input[0] != 0 || len(input) < 8 {
			wasm = damaged(scriptGuest(), input)
		}
		inspectAndRun(t, wasm)
	})
}

// FuzzInspectGo does the same to a guest that Go builds, a thousand times as large and as slow: the input is changes.
func FuzzInspectGo(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 0, 7})                // no magic number
	f.Add([]byte{2, 0x10, 0, 0, inTheHead, 0x60})  // a byte more among the types
	f.Add([]byte{0, 0, 0, 0x18, 0, 0, 3, 1, 2, 3}) // a byte of the second half, and what is no whole change
	built := guest(f, "bare")
	f.Fuzz(func(t *testing.T, input []byte) { inspectAndRun(t, damaged(built, input)) })
}

// inTheHead, as the highest byte of a place or more than that, says that the place is in the first 4 KiB, among types, imports and exports.
const inTheHead = 0x80

// damaged applies changes to a guest.
func damaged(guest, input []byte) []byte {
	wasm := slices.Clone(guest)
	for ; len(input) >= 6; input = input[6:] {
		at := binary.LittleEndian.Uint32(input[1:5])
		if input[4] >= inTheHead {
			at %= 4096
		}
		at %= uint32(len(wasm))
		switch input[0] % 3 {
		case 0:
			wasm[at] = input[5]
		case 1:
			wasm = slices.Delete(wasm, int(at), min(int(at)+1+int(input[5]%8), len(wasm)))
		case 2:
			wasm = slices.Insert(wasm, int(at), input[5])
		}
		if len(wasm) == 0 {
			break
		}
	}
	return wasm
}

func inspectAndRun(t *testing.T, wasm []byte) {
	r, err := Inspect(wasm)
	if err != nil {
		if !errors.Is(err, ErrABI) {
			t.Fatal(err)
		}
		return
	}
	h, err := New(context.Background(), Config{Wasm: wasm, CallTimeout: 200 * time.Millisecond, MemoryLimitPages: 256,
		CacheDir: t.TempDir(), PluginConfig: []byte("x")}) // a directory, for the cache in memory would keep every module
	switch loads := r.Verdicts[0].Loads; {
	case err == nil && !loads:
		t.Errorf("it runs, Inspect says %v", r.Verdicts[0].Missing)
	case err != nil && loads && !errors.Is(err, ErrTrap) && !errors.Is(err, ErrRefused) && !errors.Is(err, ErrMemory):
		t.Errorf("Inspect says that it loads: %v", err)
	}
	if err != nil {
		return
	}
	s := h.Worker(0).NewStream()
	_, err = s.RequestHeaders(get, true)
	checkHost(t, err)
	checkHost(t, s.End(EndNormal))
	ok(t, h.Close())
}
