package main

import (
	"context"
	"errors"
	"io"
)

// errInterrupted ends what a command was reading or making.
var errInterrupted = errors.New("interrupted, nothing was written")

// interruptible reads from in until ctx ends: a read that waits for a pipe or a terminal ends with it.
func interruptible(ctx context.Context, in io.Reader) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.CopyBuffer(w, struct{ io.Reader }{in}, make([]byte, 64<<10))
		w.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { w.CloseWithError(errInterrupted) })
	return r
}
