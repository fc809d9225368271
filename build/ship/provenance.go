package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// An in-toto statement that carries SLSA provenance, as far as it is used here. The published Go types are protocol buffers,
// whose JSON differs from build to build on purpose.
// https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance
type statement struct {
	Type          string    `json:"_type"`
	Subject       []subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     struct {
		BuildDefinition struct {
			BuildType            string            `json:"buildType"`
			ExternalParameters   map[string]string `json:"externalParameters"`
			ResolvedDependencies []dependency      `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	} `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"`
}

type dependency struct {
	URI    string            `json:"uri"`
	Digest map[string]string `json:"digest,omitempty"`
}

const source = "https://github.com/pinwheel-proxy/pinwheel"

// provenance says what the subjects were built from and by which command, so that somebody else can build them and compare.
// It names no machine and no time: it is the same wherever it is made.
func provenance(subjects []subject, about image.About, platforms []string, commit string, modules []module) ([]byte, error) {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1", Subject: subjects}
	build := &s.Predicate.BuildDefinition
	build.BuildType = source + "/blob/main/docs/install.md"
	build.ResolvedDependencies = []dependency{{"git+" + source, map[string]string{"gitCommit": commit}}}
	toolchain := ""
	for _, m := range modules {
		if m.Sum == "" {
			toolchain = "go" + m.Version
			build.ResolvedDependencies = append(build.ResolvedDependencies, dependency{URI: m.purl()})
			continue
		}
		hash, err := m.dirHash()
		if err != nil {
			return nil, err
		}
		build.ResolvedDependencies = append(build.ResolvedDependencies, dependency{m.purl(), map[string]string{"dirHash": hash}})
	}
	build.ExternalParameters = map[string]string{
		"version":   about.Version,
		"platforms": strings.Join(platforms, " "),
		"command":   "GOTOOLCHAIN=" + toolchain + " make release VERSION=" + about.Version + " PLATFORMS='" + strings.Join(platforms, " ") + "'",
	}
	s.Predicate.RunDetails.Builder.ID = source + "/blob/main/Makefile"
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(s)
	return b.Bytes(), err
}

// union joins lists of modules by path.
func union(lists ...[]module) []module {
	all := slices.SortedFunc(slices.Values(slices.Concat(lists...)), func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(all, func(a, b module) bool { return a.Path == b.Path })
}
