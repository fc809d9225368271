module github.com/pinwheel-proxy/pinwheel/examples/grafana

go 1.26

require (
	github.com/chromedp/chromedp v0.23.0
	github.com/grafana/grafana-foundation-sdk/go v0.0.22
	github.com/pinwheel-proxy/pinwheel v0.0.0
)

require (
	github.com/chromedp/cdproto v0.159.0 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
)

replace github.com/pinwheel-proxy/pinwheel => ../..
