package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// A name that is not known is told before anything is installed, with those that are.
func TestCheckNames(t *testing.T) {
	for _, c := range []struct{ campaign, engine, want string }{
		{"", "", ""},
		{"edges,flight", "tight", ""},
		{"", "tihgt", `-engine "tihgt" is not known: choose one of blocks-of-32, blocks-of-64, tight`},
		{"edges,none", "", `-campaign "none" is not known: choose of edges, random, one, four, flight`},
		{"edges,", "", `-campaign "" is not known`},
	} {
		err := checkNames(c.campaign, c.engine)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("-campaign %q -engine %q: %v, want %q", c.campaign, c.engine, err, c.want)
		}
	}
}

// The names that are allowed are those of the campaigns.
func TestCampaignNames(t *testing.T) {
	sessions, err := trace.Bundled().ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range campaigns(engines[0], sessions) {
		got = append(got, c.name)
	}
	if !slices.Equal(got, campaignNames) {
		t.Errorf("campaigns %v, names %v", got, campaignNames)
	}
}
