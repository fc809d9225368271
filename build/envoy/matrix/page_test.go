package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// The page lists the versions that are pinned, the newest first, with the targets that run them and hostsim's profile: since
// 1.39 Envoy has what envoy-1.40 has.
func TestPageListsPinnedVersions(t *testing.T) {
	page, err := os.ReadFile("../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "<!-- envoy:")
	text, _, ok := strings.Cut(rest, "<!-- /envoy -->")
	if !ok {
		t.Fatal("the page has no table of Envoys")
	}
	var got, want []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| 1") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	var minors []string
	for i, p := range wheel.Pinned {
		when, target := "before a release", "`make e2e-all`"
		if slices.Contains(wheel.Versions, p.Version) {
			when, target = "for every change", "`make test`, `make e2e-all`"
		}
		profile := "envoy-1.40"
		if p.Version < "1.39" {
			profile = "envoy-1.36"
		}
		if _, ok := hostsim.ProfileByName(profile); !ok {
			t.Errorf("hostsim has no profile %s", profile)
		}
		want = append(want, "| "+p.Version+" | all, "+when+" | "+target+" | `"+profile+"` |")
		if !regexp.MustCompile(`^1\.\d\d\.\d+$`).MatchString(p.Version) || i > 0 && p.Version >= wheel.Pinned[i-1].Version {
			t.Errorf("version %q is malformed, or out of order", p.Version)
		}
		for _, d := range p.SHA256 {
			if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(d) {
				t.Errorf("%s: digest %q", p.Version, d)
			}
		}
		if len(p.SHA256) != 3 {
			t.Errorf("%s has %d digests, want those of three platforms", p.Version, len(p.SHA256))
		}
		minors = append(minors, p.Version[:strings.LastIndex(p.Version, ".")])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	slices.Reverse(minors)
	if head := "| | " + strings.Join(minors, " | ") + " | shown by |"; !strings.Contains(string(page), head) {
		t.Errorf("the page has no table that begins %q", head)
	}
}
