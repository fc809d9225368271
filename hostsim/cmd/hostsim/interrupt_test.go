//go:build unix

package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// hanging is a module whose _initialize never returns.
var hanging = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x09\x02`\x00\x00`\x01\x7f\x01\x7f" +
	"\x03\x03\x02\x00\x01" +
	"\x05\x03\x01\x00\x01" +
	"\x07\x4d\x04\x17proxy_abi_version_0_2_1\x00\x00\x0b_initialize\x00\x00\x18proxy_on_memory_allocate\x00\x01\x06memory\x02\x00" +
	"\x0a\x0e\x02\x07\x00\x03\x40\x0c\x00\x0b\x0b\x04\x00A\x08\x0b")

// The first signal asks; where a plugin hangs that changes nothing, and the second one ends the process.
func TestSecondSignalEndsAHangingPlugin(t *testing.T) {
	wasm := filepath.Join(t.TempDir(), "hang.wasm")
	if err := os.WriteFile(wasm, hanging, 0o600); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--wasm", wasm, "--listen", address, "--upstream", "a=127.0.0.1:1")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for open := false; !open; { // then signals are caught
		select {
		case err := <-ended:
			t.Fatalf("serve ended by itself: %v", err)
		default:
			conn, err := net.Dial("tcp", address)
			if open = err == nil; open {
				conn.Close()
			}
		}
	}
	for sent := 0; ; sent++ {
		select {
		case err := <-ended:
			exit := (*exec.ExitError)(nil)
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT || sent < 2 {
				t.Errorf("%d signals, then %v", sent, err)
			}
			return
		case <-time.After(10 * time.Millisecond): // a flood of them overflows the signal stack of Go's runtime, which dies of that
			_ = cmd.Process.Signal(os.Interrupt) // it may have ended by now
		}
	}
}
