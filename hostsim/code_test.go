package hostsim

import (
	"context"
	"errors"
	"testing"
)

func newMinimal(t *testing.T, c Config) *Host {
	t.Helper()
	h, err := New(context.Background(), c)
	ok(t, err)
	t.Cleanup(func() { ok(t, h.Close()) })
	return h
}

// inCodes says whether the process keeps c.
func inCodes(c *code) bool {
	codes.Lock()
	defer codes.Unlock()
	for _, each := range codes.list {
		if each == c {
			return true
		}
	}
	return false
}

func TestHostsShareCode(t *testing.T) {
	m := minimal()
	m.data = t.Name()
	first, second := newMinimal(t, Config{Wasm: m.bytes()}), newMinimal(t, Config{Wasm: m.bytes(), Seed: 1})
	c := first.program.Load().code
	if second.program.Load().code != c {
		t.Error("two hosts of one module have code of their own")
	}
	other := Permissive()
	other.StartCalls = []string{}
	for _, config := range []Config{{Profile: Envoy136()}, {Profile: Permissive()}, {Profile: other}, {CallTimeout: 1e9}, {CacheDir: t.TempDir()}} {
		config.Wasm = m.bytes()
		if newMinimal(t, config).program.Load().code == c {
			t.Errorf("%+v shares the code of another way to run", config)
		}
	}
	ok(t, first.Close())
	if first.Worker(0).vm.mod != nil {
		t.Error("a closed host keeps its instance")
	}
	if v, err := second.newVM(second.program.Load(), Canary, 1); err != nil {
		t.Errorf("another host has closed the code: %v", err)
	} else {
		v.close()
	}
	ok(t, first.Close()) // counts once
	if c.users != 1 {
		t.Errorf("%d users", c.users)
	}
}

// The caller may write into the binary that it has given.
func TestCodeIsOfTheBytes(t *testing.T) {
	wasm := minimal().bytes()
	ok(t, newMinimal(t, Config{Wasm: wasm}).Close())
	clear(wasm)
	if _, err := New(context.Background(), Config{Wasm: wasm}); !errors.Is(err, ErrABI) {
		t.Errorf("err %v", err)
	}
}

func TestSpareCodesAreBounded(t *testing.T) {
	var made []*code
	for i := range spareCodes + 2 {
		m := minimal()
		m.data = t.Name() + string(rune('a'+i))
		h := newMinimal(t, Config{Wasm: m.bytes()})
		made = append(made, h.program.Load().code)
		ok(t, h.Close())
	}
	for i, c := range made {
		if inCodes(c) != (i >= 2) {
			t.Errorf("code %d kept: %v", i, inCodes(c))
		}
	}
}
