package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

var pages = flag.String("pages", "", "a folder to write the pages to, for a browser")

var drawing = regexp.MustCompile(`(?s)<svg .*?</svg>`)

// No page asks for anything else, or says what is no number; each of its drawings is well-formed, and the bytes are the same
// each time.
func TestHTML(t *testing.T) {
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			page := htmlOf(t, r)
			for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "<script", "<img", "<b>10", "<i>", "http:", "https:", "url(", "@import", "\x1b", "<no value>"} {
				if strings.Contains(page, bad) {
					t.Errorf("the page has %q", bad)
				}
			}
			if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"`) {
				t.Error("the page does not forbid the network")
			}
			for _, svg := range drawing.FindAllString(page, -1) {
				d := xml.NewDecoder(strings.NewReader(svg))
				for {
					if _, err := d.Token(); err == io.EOF {
						break
					} else if err != nil {
						t.Fatalf("%v in %.300s", err, svg)
					}
				}
			}
			if again := htmlOf(t, r); again != page {
				t.Error("the page is another the second time")
			}
			if *pages != "" {
				if err := os.WriteFile(filepath.Join(*pages, name+".html"), []byte(page), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func htmlOf(t *testing.T, r *replay.Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := HTML(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page can be sent by mail.
func TestHTMLSize(t *testing.T) {
	for name, most := range map[string]int{"campaign": 500_000, "seven": 900_000, "large": 600_000} {
		if n := len(htmlOf(t, cases()[name])); n > most {
			t.Errorf("%s: %d bytes, want at most %d", name, n, most)
		} else {
			t.Logf("%s: %d bytes", name, n)
		}
	}
}

// Every policy has its colour, its figures and its charts; of several seeds, the run of median wall time is drawn.
func TestHTMLShowsAll(t *testing.T) {
	r := fake(four, 5, 28)
	page := htmlOf(t, r)
	for _, want := range []string{"5,272", "4,323", "93.5", "4,917 to 5,756", "95.1%", "campaign.jsonl: 610 sessions"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not have %s", want)
		}
	}
	for i, p := range shownPolicies(r) {
		wall := newColumn(metricOf("wall"), r.Policies).cells[i]
		if p.Run.Wall != wall.median {
			t.Errorf("%s is shown by a run of %g s, the median is %g", p.Name, p.Run.Wall, wall.median)
		}
		if n := strings.Count(page, `"line `+p.Class+`"`); n != 8 {
			t.Errorf("%s has %d lines, want 8", p.Name, n)
		}
	}
	if n := strings.Count(page, "<figure>"); n != 9+2+4+2+4+4 {
		t.Errorf("%d figures", n)
	}
}

// A chart that there is none of does not leave its words to another.
func TestNotes(t *testing.T) {
	r := &replay.Result{Policies: []replay.PolicyResult{{Policy: "a", Seeds: make([]replay.SeedResult, 2)}}}
	f, err := drawFigures(r, shownPolicies(r))
	if err != nil || len(f.Compare) != 2 || f.Compare[1].Title != "t95, s" || f.Compare[1].Note != "until 95% of sessions ended; less is better" {
		t.Errorf("%+v, %v", f, err)
	}
}

// What cannot be written is an error.
func TestFullDisk(t *testing.T) {
	for _, write := range []func(io.Writer, *replay.Result) error{HTML, Table} {
		if err := write(full{}, fake(four[:1], 1, 1)); err != io.ErrShortWrite {
			t.Errorf("%v", err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
