package main

import (
	"errors"
	"testing"
)

// section is a section of the binary format, of fewer than 128 bytes.
func section(id byte, content ...byte) []byte {
	return append([]byte{id, byte(len(content))}, content...)
}

func names(functions ...string) []byte {
	list := []byte{byte(len(functions))}
	for i, f := range functions {
		list = append(append(list, byte(i), byte(len(f))), f...)
	}
	return section(0, append([]byte("\x04name\x01"+string(rune(len(list)))), list...)...)
}

func small(sections ...[]byte) []byte {
	wasm := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range sections {
		wasm = append(wasm, s...)
	}
	return wasm
}

// One imported function, then bodies of 1 to 4 bytes.
var (
	imports = section(2, 1)
	code    = section(10, 4, 1, 0, 2, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0)
	data    = section(11, 7, 7)
	named   = names("env.log", "_rt0_wasm", "a.example_x_json.Valid", "runtime.main", "a.example_x_json.__reader_.byte")
)

func TestRead(t *testing.T) {
	paths := []string{"a.example/x/json", "a.example/x"}
	for _, c := range []struct {
		of   string
		want map[string]int
	}{
		{"", map[string]int{"": 1, "a.example/x/json": 2 + 4, "runtime": 3}},
		{"a.example/x/json", map[string]int{"a.example_x_json.Valid": 2, "a.example_x_json.__reader_.byte": 4}},
	} {
		var m module
		if err := m.read(small(imports, code, data, named), paths, c.of); err != nil {
			t.Fatal(err)
		}
		if m.code != len(code)-2 || m.data != 2 || len(m.parts) != len(c.want) {
			t.Errorf("%+v", m)
		}
		for part, n := range c.want {
			if m.parts[part] != n {
				t.Errorf("%q: %d bytes, want %d", part, m.parts[part], n)
			}
		}
	}
}

// Every beginning of a module, and one without names, is an error and no panic.
func TestReadRefuses(t *testing.T) {
	whole := small(imports, code, data, named)
	for n := range whole {
		var m module
		if err := m.read(whole[:n], nil, ""); !errors.Is(err, errWasm) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	var m module
	if err := m.read(small(imports, code, data), nil, ""); !errors.Is(err, errWasm) {
		t.Errorf("without names: %v", err)
	}
}
