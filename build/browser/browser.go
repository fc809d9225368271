// Package browser drives a headless Chromium in tests of web pages.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// ErrMissing reports a machine without Chromium.
var ErrMissing = errors.New("browser: no Chromium")

// find returns Chromium's path: that of the environment variable CHROMIUM, or one of PATH.
func find() (string, error) {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: apt-get update && apt-get install -y chromium, or set CHROMIUM=/path/to/it", ErrMissing)
}

// Tab is an open tab. Context is for chromedp.Run. What the page says and asks for is kept. Safe for concurrent use.
type Tab struct {
	Context context.Context

	mu       sync.Mutex
	said     []string
	requests []string
}

// Open starts Chromium with a fresh profile and opens a tab. Both end with ctx, or by close, which waits until the process
// has gone. It makes no requests of its own.
func Open(ctx context.Context) (tab *Tab, close func(), err error) {
	path, err := find()
	if err != nil {
		return nil, nil, err
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, nil, err
	}
	tab = &Tab{}
	ctx, stop := chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
	)...)
	ctx, end := chromedp.NewContext(ctx, chromedp.WithListener(tab.hear))
	tab.Context = ctx
	close = func() {
		_ = chromedp.Cancel(ctx) // waits for the process
		end()
		stop()
		_ = os.RemoveAll(profile)
	}
	err = chromedp.Do(ctx) // starts it
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err != nil {
		close()
		return nil, nil, fmt.Errorf("browser: %s: %w", path, err)
	}
	return tab, close, nil
}

func (t *Tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		t.said = append(t.said, "exception: "+e.ExceptionDetails.Text+" "+describe(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, describe(a))
		}
		t.said = append(t.said, string(e.Type)+": "+strings.Join(words, " "))
	case *log.EventEntryAdded:
		t.said = append(t.said, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		t.requests = append(t.requests, e.Request.URL)
	}
}

// describe is a value of the page in words.
func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return string(o.Value) + o.Description
}

// Said returns what the page wrote to its console, exceptions and refused or failed requests among it, since the last call.
func (t *Tab) Said() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := t.said
	t.said = nil
	return said
}

// Requests returns the addresses that the page has asked for.
func (t *Tab) Requests() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.requests)
}
