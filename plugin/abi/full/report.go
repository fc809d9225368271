package full

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// report is one line about a panic: callback, text, and where it was raised. It is
// called while the panicking frames are still on the stack.
func report(callback string, cause any) string {
	text := strings.ReplaceAll(describe(cause), "\n", `\n`)
	return "panic in " + callback + ": " + text + origin()
}

// describe may call methods of the plugin, which may panic themselves.
func describe(cause any) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("%T", cause)
		}
	}()
	switch c := cause.(type) {
	case error:
		return c.Error()
	case fmt.Stringer:
		return c.String()
	}
	return fmt.Sprint(cause)
}

// origin names the line that panicked.
func origin() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	panicked := false
	for {
		f, more := frames.Next()
		if panicked && !strings.HasPrefix(f.Function, "runtime.") {
			return " (" + f.Function + " at " + f.File + ":" + strconv.Itoa(f.Line) + ")"
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
