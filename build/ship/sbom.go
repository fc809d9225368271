package main

import (
	"bytes"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/pinwheel-proxy/pinwheel/build/ship/image"
)

// sbom is a CycloneDX 1.6 bill of materials of one built file: what it is, and the modules in it. It has no serial number
// and no time but the release's, so that the same release has the same one.
func sbom(file string, content []byte, about image.About, modules []module) ([]byte, error) {
	main := cdx.Component{
		BOMRef: file, Type: cdx.ComponentTypeApplication, Name: file, Version: about.Version,
		PackageURL: "pkg:golang/github.com/pinwheel-proxy/pinwheel@" + tagOf(about.Version),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum(content)}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	var components []cdx.Component
	var refs []string
	for _, m := range modules {
		c := cdx.Component{BOMRef: m.purl(), Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: m.purl(), Scope: cdx.ScopeRequired}
		if m.Sum != "" { // a sum over names and contents, and so not one of the module's archive
			c.Properties = &[]cdx.Property{{Name: "go.sum", Value: m.Sum}}
		}
		components = append(components, c)
		refs = append(refs, m.purl())
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &main, Timestamp: time.Unix(max(about.Created.Unix(), 0), 0).UTC().Format(time.RFC3339)}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	var b bytes.Buffer
	err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
	return b.Bytes(), err
}
