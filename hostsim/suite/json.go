package suite

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// json turns a YAML value into JSON, keys in the order of the text.
func (d *decoder) json(v value) ([]byte, bool) {
	n := len(d.problems)
	out := d.appendJSON(nil, v)
	return out, !d.failed(n)
}

func (d *decoder) appendJSON(out []byte, v value) []byte {
	v, ok := d.follow(v)
	if !ok {
		return out
	}
	switch v.node.Kind {
	case yaml.MappingNode:
		out = append(out, '{')
		for i, m := range d.members(v, "a mapping") {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, m.key), ':')
			out = d.appendJSON(out, m.value)
		}
		return append(out, '}')
	case yaml.SequenceNode:
		out = append(out, '[')
		for i, item := range d.items(v, "a list") {
			if i > 0 {
				out = append(out, ',')
			}
			out = d.appendJSON(out, item)
		}
		return append(out, ']')
	}
	return d.appendScalar(out, v)
}

// appendScalar writes a number or word as JSON has it; everything else, dates among it, is text.
func (d *decoder) appendScalar(out []byte, v value) []byte {
	text := v.node.Value
	switch v.node.ShortTag() {
	case "!!null":
		return append(out, "null"...)
	case "!!bool":
		return append(out, strings.ToLower(text)...)
	case "!!int":
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			return strconv.AppendInt(out, n, 10)
		}
		if n, err := strconv.ParseUint(text, 0, 64); err == nil {
			return strconv.AppendUint(out, n, 10)
		}
		d.fail(v.place, "%s does not fit into 64 bits", short(text))
		return out
	case "!!float":
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			d.fail(v.place, "%s is no number that JSON can hold", short(text))
			return out
		}
		number, _ := json.Marshal(f)
		return append(out, number...)
	}
	return appendString(out, text)
}

// appendString writes text as JSON without the escapes that are for HTML only.
func appendString(out []byte, s string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return append(out, strings.TrimSuffix(b.String(), "\n")...)
}
