package suite

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// place is a value in the text: where it stands and by which keys it is reached.
type place struct {
	line, column int
	path         string
}

// value is one YAML value with its place.
type value struct {
	place
	node *yaml.Node
}

func at(path string, n *yaml.Node) value {
	return value{place{n.Line, n.Column, path}, n}
}

// decoder reads values and collects every mistake. Values nest no deeper than maxDepth and are visited maxVisits times,
// for aliases can make a short text into a large tree.
type decoder struct {
	file     string
	problems []Problem
	visits   int
	visited  func(object any, key string) // for tests
}

const (
	maxVisits = 200_000
	maxDepth  = 64
)

func (d *decoder) fail(p place, format string, args ...any) {
	d.problems = append(d.problems, Problem{File: d.file, Line: p.line, Column: p.column, Path: p.path,
		Text: fmt.Sprintf(format, args...)})
}

// failed reports whether anything went wrong since n problems were known.
func (d *decoder) failed(n int) bool { return len(d.problems) > n }

// follow replaces an alias by what it stands for; the place stays.
func (d *decoder) follow(v value) (value, bool) {
	for depth := 0; v.node.Kind == yaml.AliasNode; depth++ {
		if v.node.Alias == nil || depth > maxDepth {
			d.fail(v.place, "an alias of itself")
			return v, false
		}
		v.node = v.node.Alias
	}
	if d.visits++; d.visits > maxVisits || strings.Count(v.path, ".")+strings.Count(v.path, "[") > maxDepth {
		if !d.tooLarge() {
			v.path = short(v.path)
			d.fail(v.place, "too large: at most %d values, %d deep, aliases counted each time", maxVisits, maxDepth)
			d.visits = math.MaxInt / 2
		}
		return v, false
	}
	return v, true
}

func (d *decoder) tooLarge() bool { return d.visits > maxVisits+1 }

// kind names what a value is.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return strconv.Quote(short(n.Value))
	}
	return short(n.Value)
}

// short cuts what is too long to read.
func short(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, s)
}

// want reports that v is not what is asked for.
func (d *decoder) want(v value, what string) {
	d.fail(v.place, "%s where %s belongs", kind(v.node), what)
}

// member is a key of a mapping with its value.
type member struct {
	key string
	at  place // of the key
	value
}

func isMapping(v value) bool {
	n := v.node
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n.Kind == yaml.MappingNode
}

// members are the pairs of a mapping in the order of the text, each key once.
func (d *decoder) members(v value, what string) []member {
	v, ok := d.follow(v)
	if !ok {
		return nil
	}
	if v.node.Kind != yaml.MappingNode {
		d.want(v, what)
		return nil
	}
	var list []member
	seen := map[string]int{}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		k, n := v.node.Content[i], v.node.Content[i+1]
		here := place{k.Line, k.Column, v.path}
		if k.Kind != yaml.ScalarNode {
			d.fail(here, "%s where a key belongs", kind(k))
			continue
		}
		if k.ShortTag() == "!!merge" {
			d.fail(here, "a merge key (<<); allowed: an alias of a whole value")
			continue
		}
		if line, twice := seen[k.Value]; twice {
			d.fail(here, "key %q is given twice, first on line %d", short(k.Value), line)
			continue
		}
		seen[k.Value] = k.Line
		list = append(list, member{key: k.Value, at: here, value: at(join(v.path, k.Value), n)})
	}
	return list
}

func join(path, key string) string {
	if strings.ContainsAny(key, ".[] \t\n") || key == "" {
		return path + "[" + strconv.Quote(short(key)) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// field is a key of an object of type T and what reads it.
type field[T any] struct {
	key  string
	read func(d *decoder, v value, into *T)
}

func keys[T any](fields []field[T]) []string {
	list := make([]string, len(fields))
	for i := range fields {
		list[i] = fields[i].key
	}
	return list
}

// object reads a mapping with known keys and returns which keys it has.
func object[T any](d *decoder, v value, fields []field[T], into *T) map[string]place {
	has := map[string]place{}
members:
	for _, m := range d.members(v, "a mapping") {
		for _, f := range fields {
			if f.key == m.key {
				has[m.key] = m.at
				if d.visited != nil {
					d.visited(into, m.key)
				}
				f.read(d, m.value, into)
				continue members
			}
		}
		d.fail(m.at, "unknown key %q; %s", short(m.key), orNearest(m.key, keys(fields)))
	}
	return has
}

// items are the elements of a list.
func (d *decoder) items(v value, what string) []value {
	v, ok := d.follow(v)
	if !ok {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		d.want(v, what)
		return nil
	}
	list := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		list[i] = at(fmt.Sprintf("%s[%d]", v.path, i), n)
	}
	return list
}
