package hostsim

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// FuzzRecording plays arbitrary files to a small module: whatever they hold, Check ends, with an error that is one line and
// says of which sort it is.
func FuzzRecording(f *testing.F) {
	m := minimal()
	m.imports = []wasmImport{{module: "env", name: "proxy_get_header_map_value", params: []byte{i32, i32, i32, i32, i32}, results: []byte{i32}}}
	m.funcs = append(m.funcs, wasmFunc{name: "proxy_on_tick", params: []byte{i32}, body: []byte{
		0x41, 0, 0x41, 0x10, 0x41, 3, 0x41, 0x20, 0x41, 0x24, // i32.const map, key, size, value, size
		0x10, 0, 0x1a}}) // call 0, drop
	wasm := m.bytes()
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: wasm, Recorder: NewRecorder(&out, RecordOptions{})})
	if err != nil {
		f.Fatal(err)
	}
	h.workers[0].mu.Lock()
	v := h.workers[0].vm
	_, err = v.callback(&v.roots[0].guestContext, v.tick, 1)
	h.workers[0].mu.Unlock()
	if err := errors.Join(err, h.Close()); err != nil {
		f.Fatal(err)
	}
	whole := out.String()
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(whole + whole)
	f.Add(strings.Replace(whole, `"status":"BAD_ARGUMENT"`, `"status":"OK","out":{"value":[["a","b"]]},"during":[{"kind":"callback","vm":1,"name":"malloc","args":[7]},{"kind":"end","vm":1,"result":1024}]`, 1))
	f.Add(strings.Replace(whole, `"wasm_sha256":"`, `"wasm_sha256":"00`, 1))
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := Check(ctx, wasm, strings.NewReader(text))
		switch {
		case err == nil:
		case !errors.Is(err, ErrRecording) && !errors.Is(err, ErrDifference):
			t.Errorf("neither unreadable nor different: %v", err)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("more than a line: %q", err)
		}
	})
}
