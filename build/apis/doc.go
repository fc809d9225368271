// Package apis checks every gateway YAML of this repository against the types of the software that reads it: Envoy's and
// Istio's own Go API, their validation rules, and the schemas of Istio's and the Gateway API's custom resources. A field
// that these do not know is a problem, with file and line. It is a module of its own: those types are hundreds of
// packages, of which users of Pinwheel's packages want none in their go.sum.
package apis

import "fmt"

// Problem is one mistake.
type Problem struct {
	// File is relative to the root of the checkout; Line counts from 1.
	File string
	Line int
	// What says what is wrong, in one line or more.
	What string
}

// String is file:line: what.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.What) }
