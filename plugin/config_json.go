package plugin

import (
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// parseJSON checks that text is one JSON value; a mistake is named by its line
// and column.
func parseJSON(text []byte) (json.Result, error) {
	s := string(text)
	if strings.TrimSpace(s) == "" {
		return json.Result{}, configError("(whole configuration)", "empty", "a JSON object with \"replicas\" or \"pools\"")
	}
	if read, wrong := json.Mistake(s); wrong != "" {
		before := s[:read]
		line := strings.Count(before, "\n") + 1
		column := max(1, len(before)-strings.LastIndexByte(before, '\n')-1)
		return json.Result{}, configError("line "+strconv.Itoa(line)+", column "+strconv.Itoa(column), wrong, "JSON (RFC 8259: no comments, no trailing commas)")
	}
	return json.Parse(s), nil
}

func kind(v json.Result) string {
	switch {
	case v.IsObject():
		return "an object"
	case v.IsArray():
		return "a list"
	case v.IsBool():
		return "a boolean"
	case v.Type == json.Null:
		return "null"
	case v.Type == json.Number:
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
