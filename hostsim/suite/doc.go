// Package suite runs declarative cases against any proxy-wasm plugin: a YAML file says which plugin runs in which gateway,
// what clients and upstreams do, and what must come of it.
//
//	plugin:
//	  wasm: plugin.wasm
//	  config: {greeting: hi}
//	cases:
//	  - name: greets
//	    request: {path: /hello}
//	    expect:
//	      request: {headers: {x-greeting: hi}}
//	      response: {status: 200}
//
// suite.schema.json describes every key. Time is virtual and nothing is left to chance, so a suite has the same outcome
// each time.
package suite
