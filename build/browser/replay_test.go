package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pageFindings is a script that tells what is wrong with a report as it is laid out: a list of sentences.
const pageFindings = `(() => {
	const found = [], say = (...words) => found.push(words.join(" "))
	const page = document.documentElement
	if (page.scrollWidth > page.clientWidth) say("the page is", page.scrollWidth, "wide, the window", page.clientWidth)
	const colour = text => text.match(/[\d.]+/g).slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
	const light = text => { const [r, g, b] = colour(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b }
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) }
	const ground = getComputedStyle(document.body).backgroundColor
	for (const e of document.querySelectorAll("p, h1, h2, dt, dd, td, th, li, figcaption, small"))
		if (contrast(getComputedStyle(e).color, ground) < 4.5) { say("hard to read:", e.outerHTML.slice(0, 80)); break }
	for (const figure of document.querySelectorAll("figure")) {
		const svg = figure.querySelector("svg"), name = figure.querySelector("figcaption").innerText
		const box = svg.getBoundingClientRect(), frame = svg.viewBox.baseVal
		if (box.width < 250 || box.height < 60) say(name, "is", box.width, "by", box.height)
		if (!(svg.getAttribute("aria-label") || "").length) say(name, "has no text for who cannot see it")
		const shapes = [...svg.querySelectorAll("path:not(.lines):not(.tick-x):not(.tick-y)")].filter(p => { const b = p.getBBox(); return b.width > 0 || b.height > 0 })
		if (!shapes.length) say(name, "shows nothing")
		for (const shape of shapes) {
			const b = shape.getBBox()
			if (b.x < -1 || b.y < -1 || b.x + b.width > frame.width + 1 || b.y + b.height > frame.height + 1) say(name, "draws outside:", shape.outerHTML.slice(0, 60))
			const style = getComputedStyle(shape)
			if (style.fill === "rgb(0, 0, 0)" || style.stroke === "rgb(0, 0, 0)") say(name, "has no colour for", shape.getAttribute("class"))
		}
		const labels = [...svg.querySelectorAll("text")].map(t => ({ text: t.textContent, b: t.getBBox() }))
		for (const l of labels) if (l.b.x < -1 || l.b.x + l.b.width > frame.width + 1 || l.b.y + l.b.height > frame.height + 1) say(name, "cuts off", l.text)
		for (let i = 0; i < labels.length; i++) for (let k = i + 1; k < labels.length; k++) {
			const a = labels[i].b, b = labels[k].b
			if (a.x < b.x + b.width && b.x < a.x + a.width && a.y + 3 < b.y + b.height - 3 && b.y + 3 < a.y + a.height - 3) say(name, "has", labels[i].text, "over", labels[k].text)
		}
		if (!labels.length) say(name, "has no labels")
	}
	return JSON.stringify(found)
})()`

// reportPages has the report's own tests write their pages, and hostsim one of the trace that is built in, and returns their
// folder.
func reportPages(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	hostsim := exec.CommandContext(t.Context(), "dist/hostsim", "replay", "--seeds", "3", "--html", filepath.Join(folder, "hostsim.html"))
	hostsim.Dir = root
	if out, err := hostsim.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-run", "^TestHTML$", "./hostsim/replay/report", "-args", "-pages", folder)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return folder
}

func openTab(t *testing.T) *Tab {
	t.Helper()
	tab, end, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return tab
}

func evaluate[T any](t *testing.T, tab *Tab, script string) T {
	t.Helper()
	got, err := chromedp.Run(tab.Context, chromedp.Evaluate[T](script))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A report is quiet, asks for nothing, has nothing cut off, on top of something else or empty, and is no wider than the
// window: on a desk and on a phone, light and dark, and on paper.
func TestReplayReport(t *testing.T) {
	folder := reportPages(t)
	files, err := filepath.Glob(folder + "/*.html")
	if err != nil || len(files) < 8 {
		t.Fatalf("%q, %v", files, err)
	}
	tab := openTab(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".html")
		do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+file))
		for _, look := range []struct {
			name, scheme, media string
			width               int64
		}{{"desk", "light", "screen", 1280}, {"desk-dark", "dark", "screen", 1280}, {"phone", "light", "screen", 390}, {"phone-dark", "dark", "screen", 390}, {"paper", "light", "print", 794}} {
			do(t, tab, chromedp.EmulateViewport(look.width, 900), media(look.media, look.scheme))
			var findings []string
			if err := json.Unmarshal([]byte(evaluate[string](t, tab, pageFindings)), &findings); err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				t.Errorf("%s, %s: %s", name, look.name, f)
			}
			keep(t, tab, name+"-"+look.name)
		}
		if said := tab.Said(); len(said) > 0 {
			t.Errorf("%s says %q", name, said)
		}
		if got := evaluate[int](t, tab, `document.querySelectorAll("script, img, iframe, object, link:not([href='data:,'])").length`); got != 0 {
			t.Errorf("%s has %d foreign elements", name, got)
		}
	}
	for _, r := range tab.Requests() {
		if !strings.HasPrefix(r, "file://"+folder+"/") && !strings.HasPrefix(r, "data:") {
			t.Errorf("a page asked for %s", r)
		}
	}
}

// The key figures are there as text, and each policy has one colour in all charts.
func TestReplayReportSays(t *testing.T) {
	folder := reportPages(t)
	tab := openTab(t)
	do(t, tab, chromedp.EmulateViewport(1280, 900), chromedp.Navigate("file://"+folder+"/campaign.html"))
	shown := evaluate[string](t, tab, `document.body.innerText`)
	for _, want := range []string{"5,272 s", "93.5 %", "sticky_least_loaded", "cache_aware", "consistent_hash", "round_robin", "28 replicas", "4,917 to 5,756"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the page does not show %s", want)
		}
	}
	if got := evaluate[int](t, tab, `document.querySelectorAll("figure svg").length`); got != 25 {
		t.Errorf("%d charts", got)
	}
	colours := evaluate[string](t, tab, `[...new Set([...document.querySelectorAll(".p1:not(td)")].map(e => getComputedStyle(e).color))].join()`)
	if colours != "rgb(200, 80, 10)" {
		t.Errorf("a policy has the colours %s", colours)
	}
	do(t, tab, media("screen", "dark"))
	if dark := evaluate[string](t, tab, `getComputedStyle(document.querySelector(".p1")).color + getComputedStyle(document.body).backgroundColor`); dark != "rgb(255, 138, 76)rgb(16, 20, 27)" {
		t.Errorf("in the dark: %s", dark)
	}
	do(t, tab, chromedp.Navigate("file://"+folder+"/hostile.html"))
	if title := evaluate[string](t, tab, `document.title`); !strings.HasPrefix(title, "Replay: a?]0;owned") {
		t.Errorf("the title is %q", title)
	}
}

func media(name, scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: name, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// keep writes the whole page as it looks to the folder SHOTS, if that is set: to look at.
func keep(t *testing.T, tab *Tab, name string) {
	t.Helper()
	folder := os.Getenv("SHOTS")
	if folder == "" {
		return
	}
	shot, err := chromedp.Run(tab.Context, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o644); err != nil {
		t.Fatal(err)
	}
}

// With -update: the picture for the documentation, the top of the page of hostsim with six of its nine comparisons. Without:
// that there is one.
func TestReplayPicture(t *testing.T) {
	const file = root + "docs/replay.png"
	if *update {
		folder := reportPages(t)
		tab := openTab(t)
		do(t, tab, chromedp.EmulateViewport(1100, 900), media("screen", "light"), chromedp.Navigate("file://"+folder+"/hostsim.html"))
		height := evaluate[int](t, tab, `(() => {
			for (const f of document.querySelectorAll(".three figure"))
				if (/^(TTFT p50|TPOT p50|requests)/.test(f.innerText)) f.remove()
			return Math.ceil(document.getElementById("load").closest("section").getBoundingClientRect().bottom) + 14
		})()`)
		do(t, tab, chromedp.EmulateViewport(1100, int64(height)))
		shot, err := chromedp.Run(tab.Context, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		writePicture(t, file, shot)
	}
	shot, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(shot, []byte("\x89PNG")) || len(shot) > 300<<10 {
		t.Errorf("%s: %d bytes, %v: `make browser UPDATE=-update` writes it", file, len(shot), err)
	}
}
