package plugin

import "strconv"

// bodyPath is where a session id stands in a JSON body: keys of objects and
// positions in lists, from the outside in.
type bodyPath []pathPart

type pathPart struct {
	key   string
	index int // the key as a position, -1 if it is none
}

const (
	maxBodyPaths = 8
	maxPathParts = 8
	maxPartBytes = 64
)

// pathAllowed is what parseBodyPath takes, for error messages.
const pathAllowed = "keys and list positions joined by dots, such as \"metadata.session_id\" or \"messages.0.id\": " +
	"at most 8 of them, each of 1 to 64 bytes, with \\ before a dot or another of *?#|@!{[( that belongs to a key"

// parseBodyPath reads the part of gjson's path syntax that names one value. What
// gjson would read as a pattern, a query, a modifier or a literal is refused.
func parseBodyPath(s string) (path bodyPath, ok bool) {
	var part []byte
	end := func() bool {
		if len(part) == 0 || len(part) > maxPartBytes || len(path) == maxPathParts {
			return false
		}
		p := pathPart{key: string(part), index: -1}
		if n, err := strconv.ParseUint(p.key, 10, 31); err == nil && strconv.FormatUint(n, 10) == p.key {
			p.index = int(n)
		}
		path, part = append(path, p), part[:0]
		return true
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '*', '?', '#', '|', '@', '!', '{', '[', '(':
			return nil, false
		case '.':
			if !end() {
				return nil, false
			}
		case '\\':
			if i++; i == len(s) {
				return nil, false
			}
			part = append(part, s[i])
		default:
			part = append(part, s[i])
		}
	}
	return path, end()
}
