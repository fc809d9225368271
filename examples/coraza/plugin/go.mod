module github.com/pinwheel-proxy/pinwheel/examples/coraza/plugin

go 1.26

replace github.com/pinwheel-proxy/pinwheel => ../../..

require (
	github.com/corazawaf/coraza-proxy-wasm v0.0.0-20260824140537-b1770f5b0be3
	github.com/pinwheel-proxy/pinwheel v0.0.0-00010101000000-000000000000
	github.com/tetratelabs/proxy-wasm-go-sdk v0.24.0
)

require (
	github.com/corazawaf/coraza/v3 v3.3.3 // indirect
	github.com/corazawaf/libinjection-go v0.2.2 // indirect
	github.com/magefile/mage v1.15.1-0.20241126214340-bdc92f694516 // indirect
	github.com/petar-dambovaliev/aho-corasick v0.0.0-20240411101913-e07a1f0e8eb4 // indirect
	github.com/tidwall/gjson v1.20.3 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.3.0 // indirect
	github.com/valllabh/ocsf-schema-golang v1.0.3 // indirect
	golang.org/x/net v0.37.0 // indirect
	golang.org/x/sync v0.12.0 // indirect
	google.golang.org/protobuf v1.35.1 // indirect
	rsc.io/binaryregexp v0.2.0 // indirect
)
