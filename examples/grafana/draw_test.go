package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pinwheel-proxy/pinwheel/build/browser"
)

const (
	picture      = root + "/docs/dashboard.png"
	pictureLimit = 200 << 10 // bytes
)

// drawnPanel is what the page says of a panel; Error is empty if it went well.
type drawnPanel struct {
	Title  string
	Series int
	Error  string
}

// draw has a browser draw the dashboard's panels from Prometheus, by draw/page.html, and checks that each shows
// something. With -update the picture goes to docs.
func draw(t *testing.T, prom *database, begin time.Time) {
	tab, leave, err := browser.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leave)
	ctx := tab.Context
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(drawing(t, prom, begin))); err != nil {
		t.Fatal(err)
	}
	drawn, err := chromedp.Run(ctx, chromedp.Poll[[]drawnPanel](`window.drawn`, chromedp.WithPollingTimeout(5*time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Fatal(err)
	}
	var d committed
	load(t, &d)
	if len(drawn) != len(d.Panels) {
		t.Errorf("%d panels were drawn of %d", len(drawn), len(d.Panels))
	}
	for i, p := range drawn {
		if p.Error != "" || p.Title != d.Panels[i].Title || p.Series == 0 && d.Panels[i].Type != "row" {
			t.Errorf("drawn: %+v, want %s", p, d.Panels[i].Title)
		}
	}
	if shot, err = few(shot); err != nil {
		t.Fatal(err)
	}
	if len(shot) > pictureLimit || len(shot) < 20<<10 {
		t.Errorf("the picture has %d bytes, at most %d are allowed", len(shot), pictureLimit)
	}
	if *update {
		if err := os.WriteFile(picture, shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(picture); err != nil {
		t.Errorf("%v: go test -run Fleet -update writes it", err)
	}
}

// few writes a PNG anew with the 256 colours that it has most of.
func few(picture []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	count, b := map[color.RGBA]int{}, from.Bounds()
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(from.At(x, y)).(color.RGBA) }
	for y := range b.Dy() {
		for x := range b.Dx() {
			count[at(x, y)]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return count[b] - count[a] })
	var palette color.Palette
	for _, c := range all[:min(256, len(all))] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	for _, c := range all {
		index[c] = uint8(palette.Index(c))
	}
	to := image.NewPaletted(b, palette)
	for y := range b.Dy() {
		for x := range b.Dx() {
			to.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// drawing serves the page, the dashboard with values for its variables, and Prometheus's API, and returns its URL.
func drawing(t *testing.T, prom *database, begin time.Time) string {
	t.Helper()
	api, _ := url.Parse(prom.url)
	var d map[string]any
	load(t, &d)
	for _, p := range d["panels"].([]any) {
		targets, _ := p.(map[string]any)["targets"].([]any)
		for _, q := range targets {
			q := q.(map[string]any)
			q["expr"] = filled(q["expr"].(string))
		}
	}
	text, _ := json.Marshal(d)
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir("draw")))
	mux.Handle("/api/", httputil.NewSingleHostReverseProxy(api))
	mux.HandleFunc("/dashboard.json", func(w http.ResponseWriter, _ *http.Request) { w.Write(text) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	if _, err := os.Stat("draw/node_modules/uplot/dist/uPlot.iife.min.js"); err != nil {
		t.Fatal("uPlot is missing: in the root of the checkout, go run ./build/npm examples/grafana/draw ci")
	}
	return fmt.Sprintf("%s/page.html?begin=%d&end=%d", server.URL, begin.Unix()+5, time.Now().Unix())
}
