package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../docs/hostsim-suites.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every suite on the page is one, for the parser and for the schema.
func TestPageHasSuites(t *testing.T) {
	schema := compileSchema(t)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readPage(t), -1)
	if len(blocks) < 6 {
		t.Fatalf("%d suites", len(blocks))
	}
	for _, b := range blocks {
		if _, err := Parse(page, []byte(b[1])); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
		if err := validate(schema, []byte(b[1])); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
}

// The suite to begin with runs, for a plugin that does nothing at all.
func TestExampleRuns(t *testing.T) {
	s, err := Parse("example.yaml", Example)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range execute(t, s, Options{}) {
		if !r.OK {
			t.Errorf("%s: %v", r.Name, r.Problems)
		}
	}
}

// The page's reference is the schema's, word for word.
func TestReference(t *testing.T) {
	const begins, ends = "<!-- reference: go test ./hostsim/suite -run Reference -update -->\n", "<!-- end of reference -->\n"
	before, rest, ok1 := strings.Cut(readPage(t), begins)
	old, after, ok2 := strings.Cut(rest, ends)
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks %q or %q", page, begins, ends)
	}
	got := reference(t)
	if *update {
		if err := os.WriteFile(page, []byte(before+begins+got+ends+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if got != old {
		t.Errorf("not the schema's; run: go test ./hostsim/suite -run Reference -update\n%s", diff(got, old))
	}
}

// node is a part of the schema.
type node struct {
	Ref         string `json:"$ref"`
	Description string
	Type        any
	Enum        []string
	Const       any
	Default     json.RawMessage
	Minimum     *int64
	Maximum     *int64
	Items       *node
	AnyOf       []node
	Properties  map[string]node
	Additional  json.RawMessage `json:"additionalProperties"`
}

// titles are the objects of the schema that the page describes, in its order.
var titles = [][2]string{{"", "The file"}, {"plugin", "plugin"}, {"gateway", "gateway"}, {"answer", "answer"}, {"when", "when"}, {"case", "case"},
	{"step", "step"}, {"request", "request"}, {"response", "response"}, {"bodyPlan", "body"}, {"expect", "expect"},
	{"expectRequest", "expected request"}, {"expectResponse", "expected response"}, {"actions", "actions"}, {"logLine", "log line"},
	{"callout", "callout"}, {"start", "start"}, {"fault", "fault"}, {"foreignFunction", "foreign function"}, {"comparison", "comparison"}, {"numberRange", "number"}}

func reference(t *testing.T) string {
	var schema struct {
		node
		Defs map[string]node `json:"$defs"`
	}
	if err := json.Unmarshal(Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, title := range titles {
		n := schema.node
		if title[0] != "" {
			n = schema.Defs[title[0]]
		}
		fmt.Fprintf(&b, "\n### %s\n\n", title[1])
		if n.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", n.Description)
		}
		b.WriteString("| key | value | |\n|---|---|---|\n")
		for _, key := range inTextOrder(title[0], n.Properties) {
			if _, step := schema.Defs["step"].Properties[key]; step && title[0] == "case" {
				continue
			}
			p := n.Properties[key]
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, cell(p, schema.Defs), purpose(p))
		}
		if title[0] == "case" {
			b.WriteString("| | | In place of `steps`, the keys of the only [step](#step), but for `stream`. |\n")
		}
	}
	for name, def := range schema.Defs {
		if def.Properties != nil && !slices.ContainsFunc(titles, func(t [2]string) bool { return t[0] == name }) {
			t.Errorf("the page has no section for %s", name)
		}
	}
	return b.String() + "\n"
}

// inTextOrder returns the keys in the order of the schema's text, which maps forget.
func inTextOrder(def string, properties map[string]node) []string {
	from := 0
	if def != "" {
		from = bytes.Index(Schema, []byte("\n    \""+def+"\": {\n"))
	}
	var keys []string
	for k := range properties {
		keys = append(keys, k)
	}
	begins := []byte(`"properties": {`)
	text := Schema[from:]
	text = text[bytes.Index(text, begins)+len(begins):]
	place := func(k string) int { return bytes.Index(text, []byte(`"`+k+`": {`)) }
	slices.SortFunc(keys, func(a, b string) int { return place(a) - place(b) })
	return keys
}

// cell describes a value's form.
func cell(n node, defs map[string]node) string {
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		for _, title := range titles {
			if title[0] == name {
				return "[" + title[1] + "](#" + strings.ReplaceAll(title[1], " ", "-") + ")"
			}
		}
		if words := map[string]string{"matcher": "what to [compare](#a-case) with", "matchers": "by name, what to [compare](#a-case) with",
			"trueOrMatcher": "true, or what to [compare](#a-case) with", "thread": "a worker's number, or `main`", "name": "text", "pattern": "regular expression",
			"body": "text, a list of chunks, or [a plan](#body)", "headers": "by name, a value or a list", "properties": "by path, a value", "jsonAt": "by path, a value",
			"number": "a number, or [a range](#number)", "metrics": "by name, a number or [a range](#number)", "callouts": "list of [callout](#callout)",
			"logLines": "list of text or [log line](#log-line)", "actionList": "`continue`, `pause`, `reply` or `reset`, or a list"}[name]; words != "" {
			return words
		}
		return cell(defs[name], defs)
	}
	switch {
	case n.Enum != nil:
		return "`" + strings.Join(n.Enum, "`, `") + "`"
	case n.Const != nil:
		return fmt.Sprintf("`%v`", n.Const)
	case n.Items != nil:
		return "list of " + cell(*n.Items, defs)
	case n.Type == "object":
		var each node
		if json.Unmarshal(n.Additional, &each) == nil {
			return "by name, " + cell(each, defs)
		}
	case n.Minimum != nil && *n.Maximum > 1<<30:
		return fmt.Sprintf("%d and more", *n.Minimum)
	case n.Minimum != nil:
		return fmt.Sprintf("%d to %d", *n.Minimum, *n.Maximum)
	case len(n.AnyOf) > 0 && n.AnyOf[0].Type == "string":
		return "duration"
	case len(n.AnyOf) > 0:
		var words []string
		for _, a := range n.AnyOf {
			words = append(words, cell(a, defs))
		}
		return strings.Join(words, " or ")
	case n.Type == "boolean":
		return "true or false"
	case n.Type == "integer":
		return "whole number"
	case n.Type == nil:
		return "anything"
	}
	return "text"
}

// purpose says what a key is for, and its default.
func purpose(n node) string {
	text := n.Description
	if n.Default != nil {
		text = strings.TrimSpace(fmt.Sprintf("%s Default: `%s`.", text, strings.Trim(string(n.Default), `"`)))
	}
	return strings.ReplaceAll(text, "|", "\\|")
}
