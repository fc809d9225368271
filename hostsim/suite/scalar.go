package suite

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// scalar is a value's text, whatever its type: a header's value may look like a number.
func (d *decoder) scalar(v value, what string) (string, bool) {
	v, ok := d.follow(v)
	if !ok {
		return "", false
	}
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() == "!!null" {
		d.want(v, what)
		return "", false
	}
	if v.node.ShortTag() == "!!binary" {
		d.fail(v.place, "a value of the type !!binary; allowed: text")
		return "", false
	}
	return v.node.Value, true
}

func (d *decoder) text(v value, into *string) {
	if s, ok := d.scalar(v, "text"); ok {
		*into = s
	}
}

// name is text that is not empty.
func (d *decoder) name(v value, into *string) {
	if s, ok := d.scalar(v, "a name"); ok && s == "" {
		d.fail(v.place, "an empty name")
	} else if ok {
		*into = s
	}
}

func (d *decoder) boolean(v value, into *bool) {
	v, ok := d.follow(v)
	if !ok {
		return
	}
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!bool" {
		d.want(v, "true or false")
		return
	}
	*into = strings.EqualFold(v.node.Value, "true")
}

// onlyTrue reads a key whose only sensible value is true.
func (d *decoder) onlyTrue(v value, into *bool) {
	n := len(d.problems)
	if d.boolean(v, into); !*into && !d.failed(n) {
		d.fail(v.place, "only true can be meant; leave the key out otherwise")
	}
}

func (d *decoder) integer(v value, least, most int64, into *int64) {
	v, ok := d.follow(v)
	if !ok {
		return
	}
	what := "a whole number"
	if most < math.MaxInt64 {
		what = fmt.Sprintf("a whole number from %d to %d", least, most)
	}
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!int" {
		d.want(v, what)
		return
	}
	n, err := strconv.ParseInt(v.node.Value, 0, 64)
	if err != nil || n < least || n > most {
		d.want(v, what)
		return
	}
	*into = n
}

func (d *decoder) count(v value, least, most int64, into *int) {
	n := int64(*into)
	d.integer(v, least, most, &n)
	*into = int(n)
}

// duration reads a time span as Go writes it.
func (d *decoder) duration(v value, into *time.Duration) {
	const most = 1000 * time.Hour
	s, ok := d.scalar(v, `a duration such as "1.5s"`)
	if !ok {
		return
	}
	span, err := time.ParseDuration(s)
	if err != nil || span < 0 || span > most {
		d.want(v, `a duration such as "20ms", "1.5s" or "2h", up to 1000h,`)
		return
	}
	*into = span
}

// fewWords is how many values a message lists, rather than guess which one was meant.
const fewWords = 6

// oneOf reads one of several words and returns its place among them, or -1.
func (d *decoder) oneOf(v value, words []string) int {
	s, ok := d.scalar(v, "one of "+strings.Join(words, ", "))
	if !ok {
		return -1
	}
	for i, w := range words {
		if w == s {
			return i
		}
	}
	said := "allowed: " + strings.Join(words, ", ")
	if len(words) > fewWords {
		said = orNearest(s, words)
	}
	d.fail(v.place, "unknown value %q; %s", short(s), said)
	return -1
}

// readFile reads a file that the suite names, relative to the suite.
func (d *decoder) readFile(v value, into *[]byte) {
	var path string
	if d.name(v, &path); path == "" {
		return
	}
	text, err := ReadFile(beside(d.file, path), MaxModule)
	if err != nil {
		d.fail(v.place, "%s", reason(err))
		return
	}
	*into = text
}

// beside is path as seen from the folder of file.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// reason is an error about a file without the operation's name.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("%s: %v", p.Path, p.Err)
	}
	return err.Error()
}
