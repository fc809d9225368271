package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/livepage"
)

// operationFlags are those flags of serve that concern running it: what it shows of requests, and what it bounds.
type operationFlags struct {
	accessLog, page            string
	pageSessionIDs             bool
	sessionHeaders             []string
	reasonHeader               string
	stopTimeout, idleTimeout   time.Duration
	maxRequests, maxConns      int
	maxHeaderBytes, maxBodyLen int64
}

func (f *operationFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.accessLog, "access-log", "", "write a JSON line about each request to `FILE`, or - for standard output; SIGHUP opens\nthe file again")
	flags.StringVar(&f.page, "page", "", "show the gateway at work on a web page at `ADDRESS`; without a host on 127.0.0.1")
	flags.BoolVar(&f.pageSessionIDs, "page-session-ids", false, "show session ids on the page as clients send them, not as short hashes")
	flags.StringSliceVar(&f.sessionHeaders, "session-header", []string{"x-session-id"}, "request `HEADERS` that name a session, for access log and page; the first that is not\nempty")
	flags.StringVar(&f.reasonHeader, "reason-header", "x-pinwheel-reason", "response `HEADER` in which the plugin says why, for access log and page")
	flags.DurationVar(&f.stopTimeout, "stop-timeout", 30*time.Second, "when told to stop, wait this `TIME` for running requests")
	flags.DurationVar(&f.idleTimeout, "idle-timeout", 5*time.Minute, "`TIME` after which a connection without requests, an upload that stands still and a\nclient that takes nothing of its answer are cut; 0 is never")
	flags.IntVar(&f.maxRequests, "max-requests", 0, "answer 503 to what is more than `N` requests at once; 0 is without bound")
	flags.IntVar(&f.maxConns, "max-connections", 0, "take `N` connections at once, others wait; 0 is without bound")
	flags.Int64Var(&f.maxHeaderBytes, "max-header-bytes", 60<<10, "answer 431 to a request with more than these `BYTES` of headers")
	flags.Int64Var(&f.maxBodyLen, "max-body-bytes", 0, "answer 413 to a request with more than these `BYTES` of body; 0 is without bound")
}

func (f *operationFlags) check() error {
	switch {
	case f.stopTimeout <= 0:
		return usagef("--stop-timeout %v is not above 0: a second signal stops at once", f.stopTimeout)
	case f.idleTimeout < 0:
		return usagef("--idle-timeout %v is negative", f.idleTimeout)
	case f.maxRequests < 0:
		return usagef("--max-requests %d is negative", f.maxRequests)
	case f.maxConns < 0:
		return usagef("--max-connections %d is negative", f.maxConns)
	case f.maxHeaderBytes < 1<<10 || f.maxHeaderBytes > 16<<20:
		return usagef("--max-header-bytes %d is outside 1024 to 16777216", f.maxHeaderBytes)
	case f.maxBodyLen < 0:
		return usagef("--max-body-bytes %d is negative", f.maxBodyLen)
	case f.pageSessionIDs && f.page == "":
		return usagef("--page-session-ids is for the page: give --page too")
	}
	return nil
}

// operation is what serve has beside gateway and plugin. All of it is optional.
type operation struct {
	log   *accessLog
	page  *livepage.Page
	ln    net.Listener // the page's
	names *sessionNames
	flags *operationFlags
}

// open opens files and ports, before anything else is started.
func (f *operationFlags) open(stdout, stderr io.Writer) (o *operation, err error) {
	o = &operation{names: newSessionNames(f.sessionHeaders), flags: f}
	if f.accessLog != "" {
		if o.log, err = openAccessLog(f.accessLog, o.names, f.reasonHeader, stdout, stderr); err != nil {
			return nil, err
		}
	}
	if f.page != "" {
		address := f.page
		if address[0] == ':' {
			address = "127.0.0.1" + address
		}
		if o.ln, err = listen("--page", address); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// attach completes a gateway's configuration. The gateway itself and its address come later, by serve.
func (o *operation) attach(c *gateway.Config, address string, upstreams func() []gateway.Upstream, host *hostsim.Host, sim *fleet) {
	f := o.flags
	c.ShutdownTimeout, c.IdleTimeout = f.stopTimeout, f.idleTimeout
	c.MaxRequests, c.MaxConnections, c.MaxHeaderBytes, c.MaxBodyBytes = f.maxRequests, f.maxConns, int(f.maxHeaderBytes), f.maxBodyLen
	if o.ln != nil {
		p := livepage.Config{Gateway: address, Upstreams: upstreams, Session: o.names.hash, ReasonHeader: f.reasonHeader}
		if f.pageSessionIDs {
			p.Session = o.names.id
		}
		if host != nil {
			p.Metrics = host.Metrics
		}
		if sim != nil {
			p.PromptTokens = sim.promptTokens
		}
		o.page = livepage.New(p)
		c.OnHeaders = o.page.Headers
	}
	switch {
	case o.log != nil && o.page != nil:
		c.OnEnd = func(a *gateway.Access) { o.page.End(a); o.log.write(a) }
	case o.log != nil:
		c.OnEnd = o.log.write
	case o.page != nil:
		c.OnEnd = o.page.End
	}
}

// serve shows the page until ctx ends.
func (o *operation) serve(ctx context.Context) {
	if o.page == nil {
		return
	}
	server := pageServer(o.page, 10*time.Second)
	context.AfterFunc(ctx, func() { o.page.Close(); _ = server.Close() })
	go func() { _ = server.Serve(o.ln) }() // ends by ctx
}

// pageServer serves the page. A client has the patience for its request, body included, and to take an answer; an update of
// the page has a time of its own.
func pageServer(page *livepage.Page, patience time.Duration) *http.Server {
	return &http.Server{Handler: page, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
}

func (o *operation) close() {
	if o.log != nil {
		o.log.close()
	}
	if o.ln != nil {
		_ = o.ln.Close() // it may be closed by now
	}
}

// announce says where the page is.
func (o *operation) announce(w io.Writer) {
	if o.ln != nil {
		fmt.Fprintf(w, "Live page on http://%s/\n", o.ln.Addr())
	}
}
