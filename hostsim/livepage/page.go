// Package livepage is a web page that shows a gateway at work: its replicas, what was decided about each request, and which
// session is at home where. It only reads, and knows no plugin: replicas and requests are the gateway's own facts, the reason
// of a decision is a response header, and numbers of a replica are the plugin's gauges whose names end with its address.
package livepage

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// Config says where a page has its facts from. All functions are called often and must be safe for concurrent use.
type Config struct {
	// Gateway is the address of the gateway, for the page's head.
	Gateway string
	// Upstreams are the replicas. Required.
	Upstreams func() []gateway.Upstream
	// Metrics are the plugin's. Nil means none.
	Metrics func() []hostsim.Metric
	// PromptTokens is how many tokens of prompts the replica at an address has had, and how many of them it had cached. 0 of
	// 0 means unknown, nil that of all.
	PromptTokens func(address string) (cached, all int64)
	// Session names the session of a request as the page may show it. Empty means that it has none. Required.
	Session func(*http.Request) string
	// ReasonHeader is the response header in which the plugin says why it chose.
	ReasonHeader string
	// Every is the time between two updates. Zero means 250 ms.
	Every time.Duration
	// Viewers bounds how many look at once; further ones get 503. Zero means 64.
	Viewers int
}

// Page is an http.Handler: the page at /, its updates at /events. Safe for concurrent use.
type Page struct {
	config   Config
	instance string // tells a restarted gateway from the one before

	mu      sync.Mutex
	state   state
	viewers map[*viewer]bool
	running bool // run
	closed  bool
}

// New returns a page that has seen no request.
func New(c Config) *Page {
	if c.Every == 0 {
		c.Every = 250 * time.Millisecond
	}
	if c.Viewers == 0 {
		c.Viewers = 64
	}
	return &Page{config: c, instance: time.Now().UTC().Format(time.RFC3339Nano), state: newState(), viewers: map[*viewer]bool{}}
}

//go:embed page.html
var html string

//go:embed page.css
var css string

//go:embed page.js
var js string

// document is the page in one piece, and policy what a browser may run of it: nothing else, and from nowhere else.
var document, policy = func() (string, string) {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.NewReplacer("/*css*/", css, "/*js*/", js).Replace(html),
		"default-src 'none'; connect-src 'self'; img-src data:; style-src " + hash(css) + "; script-src " + hash(js) +
			"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
}()

// ServeHTTP answers GET and HEAD, and only what comes from the page itself or from an address bar: the Host must be an IP
// address or localhost, so that no site's name leads here (DNS rebinding).
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		h.Set(name, value)
	}
	switch {
	case !ownHost(r.Host):
		http.Error(w, "this page answers to an IP address or localhost as its host: a proxy in front of it has to set that", http.StatusForbidden)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "this page is read only", http.StatusMethodNotAllowed)
	case r.URL.Path == "/":
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(document)) // who has gone needs no page
	case r.URL.Path == "/events" && r.Method == http.MethodGet:
		if from := r.Header.Get("Sec-Fetch-Site"); from != "" && from != "same-origin" && from != "none" {
			http.Error(w, "for the page itself", http.StatusForbidden)
			return
		}
		p.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

// ownHost reports whether a Host header is one that no DNS answer can make.
func ownHost(authority string) bool {
	host := authority
	if name, _, err := net.SplitHostPort(authority); err == nil {
		host = name
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return strings.EqualFold(host, "localhost")
}
