package suite

import _ "embed" // the files below

// Example is a suite to begin with, with a comment for each thing that it shows.
//
//go:embed example.yaml
var Example []byte

// Schema is the JSON schema of suites, draft 2020-12.
//
//go:embed suite.schema.json
var Schema []byte
