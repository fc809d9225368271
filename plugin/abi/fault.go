package abi

import (
	"runtime"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

// OnFault, if set, runs after a callback panicked, to undo what the callback may
// have left half done. contextID is the context the callback was for.
var OnFault func(callback string, contextID uint32)

// logInterval keeps a fault that hits every request from flooding the log.
const logInterval = 60e9 // nanoseconds

var (
	faults     uint64
	nextReport int64
)

// Faults returns how many callbacks have panicked in this VM.
func Faults() uint64 { return faults }

// finished is set by a callback that comes to its end. To ask recover costs more.
var finished bool

// recovered is deferred by every exported callback.
func recovered(callback string, contextID uint32) {
	depth--
	if finished {
		finished = false
		return
	}
	cause := recover()
	if cause == nil {
		return
	}
	faults++
	defer func() { _ = recover() }() // nothing leaves, not even from here
	if now := Nanotime(); now >= nextReport {
		nextReport = now + logInterval
		proxywasm.LogCritical("pinwheel: " + callback + " panicked, the request goes on without it: " +
			describe(cause) + origin() + " (" + strconv.FormatUint(faults, 10) + " in this worker so far)")
	}
	if OnFault != nil {
		OnFault(callback, contextID)
	}
}

func describe(cause any) string {
	switch c := cause.(type) {
	case error:
		return c.Error()
	case string:
		return c
	}
	return "panic of an unprintable type"
}

// origin names the line that panicked. It is called while the panicking frames
// are still on the stack.
func origin() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		if panicked && len(f.Function) > 8 && f.Function[:8] != "runtime." {
			return " at " + f.File + ":" + strconv.Itoa(f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
