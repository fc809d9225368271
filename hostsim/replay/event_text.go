package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// eventForms are what ParseEvent reads.
const eventForms = `"fail N at T [for T]", "join at T", "drain N at T", "undrain N at T", "remove N at T", "update at T pause T", ` +
	`"update every T pause T", "etcd_down at T [for T]" or "etcd_hangs at T [for T]"`

// ParseEvent reads an event from words: a kind, the replica's number from 0 where the kind concerns one, and times such as
// 90s or 1h30m after "at", "every" (first after as long), "for" and "pause". Errors: ErrEvent.
func ParseEvent(text string) (Event, error) {
	bad := func(format string, args ...any) (Event, error) {
		return Event{}, fmt.Errorf("%w: %q: %s; it reads %s", ErrEvent, text, fmt.Sprintf(format, args...), eventForms)
	}
	words := strings.Fields(text)
	if len(words) == 0 {
		return bad("it is empty")
	}
	e := Event{Kind: EventKind(words[0])}
	words = words[1:]
	if !e.Kind.known() {
		return bad("%q does not happen", string(e.Kind))
	}
	if e.Kind.numbered() {
		if len(words) == 0 {
			return bad("the replica's number is missing")
		}
		n, err := strconv.ParseUint(words[0], 10, 16)
		if err != nil {
			return bad("%q is no replica's number", words[0])
		}
		e.Replica, words = int(n), words[1:]
	}
	seen := map[string]bool{}
	for len(words) > 0 {
		word := words[0]
		if !e.Kind.knows(word) {
			return bad("%q is not expected there", word)
		}
		if seen[word] {
			return bad("%q is said twice", word)
		}
		seen[word] = true
		if len(words) == 1 {
			return bad("%q has no time", word)
		}
		d, err := time.ParseDuration(words[1])
		if err != nil || d < 0 {
			return bad("%q is no time", words[1])
		}
		*e.field(word) = d
		words = words[2:]
	}
	switch {
	case seen["every"] && e.Every == 0:
		return bad("every 0 has no end")
	case seen["every"] && !seen["at"]:
		e.At = e.Every
	case !seen["at"]:
		return bad(`the time is missing ("at T")`)
	}
	if e.Kind == EventUpdate && !seen["pause"] {
		return bad(`how long it takes is missing ("pause T")`)
	}
	if err := e.Validate(maxReplicas); err != nil {
		return Event{}, err
	}
	return e, nil
}

// knows tells whether the kind has a time after word.
func (k EventKind) knows(word string) bool {
	switch word {
	case "at":
		switch k {
		case EventJoin, EventUpdate:
			return true
		}
		return k.numbered() || k.OfEtcd()
	case "for":
		return k == EventFail || k.OfEtcd()
	case "every", "pause":
		return k == EventUpdate
	}
	return false
}

func (e *Event) field(word string) *time.Duration {
	switch word {
	case "at":
		return &e.At
	case "every":
		return &e.Every
	}
	return &e.For
}

// String is the event as ParseEvent reads it.
func (e Event) String() string {
	s := string(e.Kind)
	if e.Kind.numbered() {
		s += " " + strconv.Itoa(e.Replica)
	}
	if e.Every != e.At || e.Every == 0 {
		s += " at " + e.At.String()
	}
	if e.Every > 0 {
		s += " every " + e.Every.String()
	}
	switch {
	case e.Kind == EventUpdate:
		s += " pause " + e.For.String()
	case e.For > 0:
		s += " for " + e.For.String()
	}
	return s
}
