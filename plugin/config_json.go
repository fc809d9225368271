package plugin

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// parseJSON checks that text is one JSON value; a mistake is named by its line
// and column.
func parseJSON(text []byte) (gjson.Result, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return gjson.Result{}, configError("(whole configuration)", "empty", "a JSON object with \"replicas\" or \"pools\"")
	}
	if i := mistake(text); i >= 0 {
		before := string(text[:i])
		line := strings.Count(before, "\n") + 1
		column := i - strings.LastIndexByte(before, '\n')
		wrong := "ends too soon"
		if i < len(text) {
			wrong = "unexpected " + strconv.QuoteRune(rune(text[i]))
		}
		return gjson.Result{}, configError("line "+strconv.Itoa(line)+", column "+strconv.Itoa(column), wrong,
			"JSON (RFC 8259: no comments, no trailing commas)")
	}
	return gjson.ParseBytes(text), nil
}

func kind(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "a list"
	case v.IsBool():
		return "a boolean"
	case v.Type == gjson.Null:
		return "null"
	case v.Type == gjson.Number:
		return "a number"
	}
	return "a string"
}

func quote(s string) string { return strconv.Quote(s) }

func list(names []string) string { return strings.Join(names, ", ") }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func orRoot(path string) string {
	if path == "" {
		return "(whole configuration)"
	}
	return path
}

func element(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// nearest returns the name with the smallest edit distance to s.
func nearest(s string, names []string) string {
	best, least := "", -1
	for _, n := range names {
		if d := editDistance(s, n); least < 0 || d < least {
			best, least = n, d
		}
	}
	return best
}

// editDistance is the Levenshtein distance in bytes; s is cut at 64 bytes, which
// no key of ours is near.
func editDistance(s, t string) int {
	s = s[:min(len(s), 64)]
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(s) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(t) {
			cost := diagonal
			if s[i] != t[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(t)]
}
