package suite

import "strings"

// orNearest says which of the allowed words was meant, or lists them all where none is near.
func orNearest(word string, allowed []string) string {
	best, least := "", len(word)*2/5+1 // two letters of five may be wrong
	for _, a := range allowed {
		if len(word) > longestWord {
			break
		}
		if d := distance(strings.ToLower(word), a); d < least {
			best, least = a, d
		}
	}
	if best != "" {
		return `nearest is "` + best + `"`
	}
	return "allowed: " + strings.Join(allowed, ", ")
}

// longestWord is the number of bytes beyond which a word is not compared.
const longestWord = 64

// distance is the number of letters to insert, drop, change or swap with their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > longestWord || len(b) > longestWord {
		return longestWord
	}
	var rows [longestWord + 1][longestWord + 1]int
	for i := range len(a) + 1 {
		for j := range len(b) + 1 {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			default:
				same := 1
				if a[i-1] == b[j-1] {
					same = 0
				}
				rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+same)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}
