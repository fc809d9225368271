package plugin

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// ErrConfig is wrapped by every error of ParseConfig.
var ErrConfig = errors.New("pinwheel: configuration refused")

// configMistake is ErrConfig with its reason; fmt, which would say the same by %w, is a tenth of a megabyte of module.
type configMistake string

func (m configMistake) Error() string { return ErrConfig.Error() + ": " + string(m) }

func (m configMistake) Unwrap() error { return ErrConfig }

func configError(path, wrong, allowed string) error {
	return configMistake(oneLine(path) + ": " + oneLine(wrong) + "; allowed: " + allowed)
}

// oneLine takes line breaks out of what quotes the configuration, and cuts what is
// too long to read.
func oneLine(s string) string {
	const most = 200
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// decoder reads JSON values into a Config and keeps the first error.
type decoder struct{ err error }

// field is a key of an object and what reads it.
type field struct {
	key  string
	read func(path string, v json.Result)
}

type fields []field

func (f fields) keys() []string {
	keys := make([]string, len(f))
	for i := range f {
		keys[i] = f[i].key
	}
	return keys
}

func (d *decoder) fail(path, wrong, allowed string) {
	if d.err == nil {
		d.err = configError(path, wrong, allowed)
	}
}

func (d *decoder) object(path string, v json.Result, known fields) {
	if !v.IsObject() {
		d.fail(orRoot(path), kind(v)+" where an object belongs", "an object with "+list(known.keys()))
		return
	}
	seen := map[string]bool{}
	v.ForEach(func(k, v json.Result) bool {
		key := k.Str
		at := join(path, key)
		if seen[key] {
			d.fail(at, "given twice", "each key once")
		}
		seen[key] = true
		for _, f := range known {
			if f.key == key {
				f.read(at, v)
				return d.err == nil
			}
		}
		d.fail(at, "unknown key; did you mean "+quote(nearest(key, known.keys()))+"?", list(known.keys()))
		return false
	})
}

func (d *decoder) array(path string, v json.Result, each func(path string, v json.Result)) {
	if !v.IsArray() {
		d.fail(path, kind(v)+" where a list belongs", "a list")
		return
	}
	i := 0
	v.ForEach(func(_, v json.Result) bool {
		each(element(path, i), v)
		i++
		return d.err == nil
	})
}

func (d *decoder) text(dst *string, path string, v json.Result) {
	if v.Type != json.String {
		d.fail(path, kind(v)+" where a string belongs", "a string")
		return
	}
	*dst = strings.Clone(v.Str)
}

func (d *decoder) boolean(dst *bool, path string, v json.Result) {
	if !v.IsBool() {
		d.fail(path, kind(v)+" where a boolean belongs", "true or false")
		return
	}
	*dst = v.Bool()
}

func (d *decoder) integer(dst *int, path string, v json.Result, least, most int) {
	n, err := strconv.Atoi(v.Raw)
	if v.Type != json.Number || err != nil || n < least || n > most {
		d.fail(path, outOfRange(v), "a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
		return
	}
	*dst = n
}

// number reads a number from 0 to most.
// outOfRange says what is wrong with a value that is not the number that is asked
// for: "0.5" looks as if it were in range.
func outOfRange(v json.Result) string {
	if v.Type != json.Number {
		return kind(v) + " where a number belongs"
	}
	return v.Raw + " is out of range"
}

func (d *decoder) number(dst *float64, path string, v json.Result, most int) {
	if v.Type != json.Number || v.Num < 0 || v.Num > float64(most) {
		d.fail(path, outOfRange(v), "a number from 0 to "+strconv.Itoa(most))
		return
	}
	*dst = v.Num
}

func (d *decoder) duration(dst *time.Duration, path string, v json.Result, least, most time.Duration) {
	t, err := time.ParseDuration(v.Str)
	if v.Type != json.String || err != nil || t < least || t > most {
		d.fail(path, v.Raw+" is no duration in range", "a string such as \"90s\" or \"2h\", from "+least.String()+" to "+most.String())
		return
	}
	*dst = t
}

func (d *decoder) oneOf(dst *string, path string, v json.Result, names ...string) {
	for _, n := range names {
		if v.Type == json.String && v.Str == n {
			*dst = n
			return
		}
	}
	wrong := "unknown value"
	if v.Type == json.String && len(names) > 1 {
		wrong += "; did you mean " + quote(nearest(v.Str, names)) + "?"
	}
	d.fail(path, v.Raw+" is an "+wrong, list(names))
}

// name reads a pool's name, which becomes part of keys and metric names.
func (d *decoder) name(dst *string, path string, v json.Result) {
	const allowed = "1 to 63 letters, digits, \"-\" and \"_\""
	var s string
	d.text(&s, path, v)
	if s == "" || len(s) > 63 || strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) >= 0 {
		d.fail(path, quote(s)+" is no name", allowed)
		return
	}
	*dst = s
}

func (d *decoder) headerNames(path string, v json.Result, most int) (names []string) {
	names = []string{}
	d.array(path, v, func(path string, v json.Result) {
		var h string
		d.headerName(&h, path, v)
		names = append(names, h)
	})
	if len(names) > most {
		d.fail(path, strconv.Itoa(len(names))+" names", "at most "+strconv.Itoa(most))
	}
	return names
}

// tokenMarks are the characters of a header name besides letters and digits
// (RFC 9110, section 5.6.2).
const tokenMarks = "!#$%&'*+-.^_`|~"

func (d *decoder) headerName(dst *string, path string, v json.Result) {
	var s string
	d.text(&s, path, v)
	s = strings.ToLower(s)
	if s == "" || strings.IndexFunc(s, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && !strings.ContainsRune(tokenMarks, r)
	}) >= 0 {
		d.fail(path, quote(s)+" is no header name", "letters, digits and "+tokenMarks)
		return
	}
	*dst = s
}
