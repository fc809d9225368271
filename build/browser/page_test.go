package browser

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the pictures of docs anew")

const root = "../../"

// serve is a running `hostsim serve` with Pinwheel and the page.
type serve struct {
	t        *testing.T
	listen   string
	page     string
	replicas []string
	cmd      *exec.Cmd
	out      io.ReadCloser
	stderr   bytes.Buffer
}

var address = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func startServe(t *testing.T, flags ...string) *serve {
	t.Helper()
	s := &serve{t: t, listen: freePort(t), page: freePort(t)}
	s.start(flags...)
	t.Cleanup(s.stop)
	return s
}

func (s *serve) start(flags ...string) {
	s.t.Helper()
	s.cmd = exec.Command(root+"dist/hostsim", append([]string{"serve", "--wasm", root + "dist/pinwheel.wasm",
		"--listen", s.listen, "--page", s.page}, flags...)...)
	s.cmd.Stderr = &s.stderr
	var err error
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("%v: `make wasm build` builds it", err)
	}
	lines := bufio.NewScanner(s.out)
	for lines.Scan() {
		if text := lines.Text(); strings.HasPrefix(text, "  cluster ") {
			s.replicas = address.FindAllString(text, -1)
		} else if strings.HasPrefix(text, "Live page on http://"+s.page) {
			go io.Copy(io.Discard, s.out)
			return
		}
	}
	_ = s.cmd.Wait()
	s.cmd = nil
	s.t.Fatalf("hostsim serve ended: %s", s.stderr.String())
}

// stop has the gateway end as a user does.
func (s *serve) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(os.Interrupt)
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("hostsim serve, told to stop: %v\n%s", err, s.stderr.String())
	}
	s.cmd = nil
}

// open opens a tab at the page of s.
func open(t *testing.T, s *serve) *Tab {
	t.Helper()
	tab, end, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	do(t, tab, chromedp.EmulateViewport(1320, 860), chromedp.Navigate("http://"+s.page+"/"))
	wait(t, tab, `document.getElementById("link").dataset.link === "on"`)
	return tab
}

func do(t *testing.T, tab *Tab, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(tab.Context, steps...); err != nil {
		t.Fatal(err)
	}
}

// wait is until an expression of the page's is true.
func wait(t *testing.T, tab *Tab, expression string) {
	t.Helper()
	if _, err := chromedp.Run(tab.Context, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(5*time.Minute))); err != nil {
		text, _ := chromedp.Run(tab.Context, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("%s: %v\nthe page says %v and shows\n%s", expression, err, tab.Said(), text)
	}
}

func text(t *testing.T, tab *Tab, expression string) string {
	t.Helper()
	got, err := chromedp.Run(tab.Context, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// quiet checks that the page has said nothing and asked nobody else.
func quiet(t *testing.T, tab *Tab, s *serve) {
	t.Helper()
	if said := tab.Said(); len(said) > 0 {
		t.Errorf("the page says %q", said)
	}
	requests := tab.Requests()
	if !slices.Contains(requests, "http://"+s.page+"/events") {
		t.Errorf("the page asked for %q, events not among them", requests)
	}
	for _, r := range requests {
		if u, err := url.Parse(r); err != nil || u.Scheme != "data" && u.Host != s.page {
			t.Errorf("the page asked for %s", r)
		}
	}
}

func turn(t *testing.T, s *serve, session string) {
	t.Helper()
	if err := Turn(t.Context(), "http://"+s.listen, session, 200, 8); err != nil {
		t.Fatal(err)
	}
}

// row is a script for the cell of a replica's row, as text.
func row(address string, cell int) string {
	return fmt.Sprintf(`[...document.querySelectorAll("#replicas tbody tr")].find(r => r.cells[0].innerText.includes(%q))?.cells[%d].innerText.trim()`, address, cell)
}

// The page shows replicas, decisions with their reasons, open sessions and their homes, while it happens.
func TestPageFollowsTraffic(t *testing.T) {
	s := startServe(t, "--sim-replicas", "3", "--page-session-ids")
	tab := open(t, s)
	wait(t, tab, `document.querySelectorAll("#replicas tbody tr").length === 3`)
	for _, r := range s.replicas {
		if got := text(t, tab, row(r, 0)); !strings.Contains(got, "not asked yet") {
			t.Errorf("%s is shown as %q", r, got)
		}
	}
	for _, session := range []string{"planner", "coder", "critic", "planner"} {
		turn(t, s, session)
	}
	wait(t, tab, `[...document.querySelectorAll("#decisions tbody tr")].map(r => r.cells[1].innerText + " " + r.cells[2].innerText).join() === "planner pinned,critic placed,coder placed,planner placed"`)
	wait(t, tab, `document.getElementById("open").innerText === "3"`)
	for _, r := range s.replicas {
		wait(t, tab, row(r, 1)+` === "1"`)
		if got := text(t, tab, row(r, 0)); !strings.Contains(got, "answers") {
			t.Errorf("%s is shown as %q", r, got)
		}
	}
	homes := text(t, tab, `[...document.querySelectorAll("#decisions tbody tr")].slice(1).map(r => r.cells[1].innerText + "@" + r.cells[3].innerText).sort().join()`)
	wait(t, tab, fmt.Sprintf(`[...document.querySelectorAll("#replicas tbody tr")].map(r => r.querySelector(".homes").innerText.trim() + "@" + r.querySelector(".address").innerText).sort().join() === %q`, homes))
	if got := text(t, tab, `[...document.querySelectorAll("#reasons tbody tr")].map(r => r.innerText.replace(/\s+/g, " ").trim()).sort().join()`); got != "pinned 1,placed 3" {
		t.Errorf("reasons: %q", got)
	}
	// Of four prompts, nearly all of one was cached: a mean of the replicas' shares would be 16%.
	wait(t, tab, `parseInt(document.getElementById("hit").innerText) > 20`)
	// A release shows as the open session that is gone.
	release(t.Context(), "http://"+s.listen, "planner")
	wait(t, tab, `document.getElementById("open").innerText === "2"`)
	quiet(t, tab, s)
}

// A request that runs is shown as running, and its decision before it ends.
func TestPageShowsWhatRuns(t *testing.T) {
	hold := make(chan struct{})
	slow := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-hold
	})}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go slow.Serve(ln)
	t.Cleanup(func() { slow.Close() })
	own := ln.Addr().String()
	s := startServe(t, "--upstream", "own="+own, "--config", `{"debug_headers": true, "replicas": ["`+own+`"]}`)
	tab := open(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = Turn(ctx, "http://"+s.listen, "mei", 1, 1) }()
	wait(t, tab, row(own, 2)+` === "1"`)
	wait(t, tab, `document.getElementById("running").innerText === "1"`)
	wait(t, tab, `document.querySelector("#decisions tbody tr")?.cells[2].innerText === "placed"`)
	if got := text(t, tab, `document.querySelector("#decisions tbody tr").cells[1].innerText`); !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(got) {
		t.Errorf("the session is shown as %q, want a short hash", got)
	}
	close(hold)
	<-ended
	cancel()
	wait(t, tab, row(own, 2)+` === "0"`)
	quiet(t, tab, s)
}

// A session id is text, whatever it looks like.
func TestHostileSessionID(t *testing.T) {
	s := startServe(t, "--sim-replicas", "3", "--page-session-ids")
	tab := open(t, s)
	const hostile = `</td><script>document.title="owned"</script><img src=x onerror=document.title="owned">`
	turn(t, s, hostile)
	wait(t, tab, fmt.Sprintf(`document.querySelector("#decisions tbody tr")?.cells[1].textContent === %q`, hostile))
	wait(t, tab, fmt.Sprintf(`document.querySelector("#replicas .chip")?.textContent === %q`, hostile))
	if got := text(t, tab, `document.title + document.querySelectorAll("tbody script, tbody img").length`); got != "hostsim: live0" {
		t.Errorf("title and foreign elements: %q", got)
	}
	quiet(t, tab, s)
}

// So is a reason, which with another header may be anything that a replica says.
func TestHostileReason(t *testing.T) {
	reasons := make(chan string, 4)
	said := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("x-why", <-reasons) })}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go said.Serve(ln)
	t.Cleanup(func() { said.Close() })
	own := ln.Addr().String()
	s := startServe(t, "--upstream", "own="+own, "--config", `{"replicas": ["`+own+`"]}`, "--reason-header", "x-why")
	tab := open(t, s)
	for _, reason := range []string{"constructor", "__proto__", `<img src=x onerror=document.title="owned">`, "fine"} {
		reasons <- reason
		turn(t, s, "s")
		wait(t, tab, fmt.Sprintf(`document.querySelector("#decisions tbody tr")?.cells[2].textContent === %q`, reason))
		wait(t, tab, fmt.Sprintf(`[...document.querySelectorAll("#reasons tbody tr")].some(r => r.cells[0].textContent === %q && r.cells[1].innerText.trim() === "1")`, reason))
	}
	quiet(t, tab, s)
}

// A page left open comes back when the gateway does, and shows the new one's state.
func TestPageReconnects(t *testing.T) {
	s := startServe(t, "--sim-replicas", "3", "--page-session-ids")
	tab := open(t, s)
	turn(t, s, "before")
	wait(t, tab, `document.querySelectorAll("#decisions tbody tr").length === 1`)
	quiet(t, tab, s)
	s.stop()
	wait(t, tab, `document.getElementById("link").dataset.link === "off"`)
	s.start("--sim-replicas", "3", "--page-session-ids")
	wait(t, tab, `document.getElementById("link").dataset.link === "on" && document.querySelectorAll("#decisions tbody tr").length === 0`)
	turn(t, s, "after")
	wait(t, tab, `[...document.querySelectorAll("#decisions tbody tr")].map(r => r.cells[1].innerText).join() === "after"`)
	for _, said := range tab.Said() { // what the browser itself says of a server that is away
		if !strings.Contains(said, "ERR_CONNECTION_REFUSED") && !strings.Contains(said, "ERR_INCOMPLETE_CHUNKED_ENCODING") && !strings.Contains(said, "ERR_CONNECTION_RESET") {
			t.Errorf("the page says %q", said)
		}
	}
}

// A link that died without a word, as one through a tunnel may, is noticed and made anew.
func TestPageNoticesSilence(t *testing.T) {
	s := startServe(t, "--sim-replicas", "1", "--page-session-ids")
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	var dead atomic.Bool
	page := s.page
	s.page = ln.Addr().String()
	go func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", page)
			if err != nil {
				client.Close()
				return
			}
			t.Cleanup(func() { client.Close(); server.Close() })
			mute := !dead.Load()
			go io.Copy(server, client)
			go func() {
				for piece := make([]byte, 32<<10); ; {
					n, err := server.Read(piece)
					if err != nil {
						return
					}
					if mute && dead.Load() {
						continue // neither news nor an end
					}
					if _, err := client.Write(piece[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	tab := open(t, s)
	dead.Store(true)
	wait(t, tab, `document.getElementById("link").dataset.link === "off"`)
	turn(t, s, "after")
	wait(t, tab, `document.getElementById("link").dataset.link === "on" && document.querySelector("#decisions tbody tr")?.cells[1].innerText === "after"`)
	quiet(t, tab, s)
}

// With -update: the picture for the documentation. Without: that there is one, of the size that it is made with.
func TestPicture(t *testing.T) {
	const file = root + "docs/live-page.png"
	if *update {
		s := startServe(t, "--sim-replicas", "3", "--sim-token-time", "25ms", "--page-session-ids")
		tab := open(t, s)
		do(t, tab, chromedp.EmulateViewport(1280, 794), scheme(os.Getenv("SCHEME")))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); Work(ctx, "http://"+s.listen, 9, 4) }()
		wait(t, tab, `parseInt(document.getElementById("total").innerText.replace(",", "")) >= 250`)
		shot, err := chromedp.Run(tab.Context, chromedp.CaptureScreenshot())
		stop()
		<-ended
		if err != nil {
			t.Fatal(err)
		}
		writePicture(t, file, shot)
		quiet(t, tab, s)
	}
	shot, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(shot, []byte("\x89PNG")) || len(shot) > 160<<10 {
		t.Errorf("%s: %d bytes, %v: `make browser UPDATE=-update` writes it", file, len(shot), err)
	}
}

// writePicture writes a screenshot as a small file.
func writePicture(t *testing.T, file string, shot []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, picture); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, small.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func scheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
		return err
	})
}
