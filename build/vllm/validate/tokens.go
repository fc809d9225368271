package main

import "fmt"

// vocabulary turns ids into tokens, idTokens for each. Every id but a generated one gets tokens that no other id has.
type vocabulary struct {
	numbers map[uint64]uint32
	answers map[int][]int // what was generated, by the request's number
}

func newVocabulary() *vocabulary {
	return &vocabulary{numbers: map[uint64]uint32{}, answers: map[int][]int{}}
}

// prompt returns r's prompt as tokens of 0 to 255. Error: it goes on from an answer that is not there.
func (v *vocabulary) prompt(r *request) ([]int, error) {
	tokens := make([]int, 0, r.Prompt)
	for _, id := range r.IDs {
		if id&generatedSpace != 0 && id&classSpace == 0 {
			number, at := int(id&^generatedSpace>>20), int(id&(1<<20-1))*idTokens
			if len(v.answers[number]) < at+idTokens {
				return nil, fmt.Errorf("session %d, turn %d: no token %d of answer %d", r.Session, r.Turn, at, number)
			}
			tokens = append(tokens, v.answers[number][at:at+idTokens]...)
			continue
		}
		number, known := v.numbers[id]
		if !known {
			// An odd factor maps 32 bits to 32 bits one to one. Without it most tokens would be zero.
			number = uint32(len(v.numbers)+1) * 2654435761
			v.numbers[id] = number
		}
		for shift := 0; shift < 32; shift += 8 {
			tokens = append(tokens, int(number>>shift&0xff))
		}
	}
	for len(tokens) < r.Prompt {
		tokens = append(tokens, 0)
	}
	return tokens, nil
}

// classSpace is the highest bit, which some of the trace's ids have.
const classSpace = 1 << 63
