package main

// vocabulary turns ids into tokens, idTokens for each. Every id but a generated one gets tokens that no other id has.
type vocabulary struct{ numbers map[uint64]uint32 }

func newVocabulary() *vocabulary { return &vocabulary{numbers: map[uint64]uint32{}} }

// classSpace is the highest bit, which some of the trace's ids have.
const classSpace = 1 << 63

// answerToken is the only token that the request with that number may generate, again and again. Left to itself the model
// would now and then answer equal prompts alike, for a while, and names of what is generated would be wrong.
func answerToken(number int) int { return number % 320 }

// prompt returns r's prompt as tokens of the tiny model, which has 320.
func (v *vocabulary) prompt(r *request) []int {
	tokens := make([]int, 0, r.Prompt)
	for _, id := range r.IDs {
		if id&generatedSpace != 0 && id&classSpace == 0 {
			for range idTokens {
				tokens = append(tokens, answerToken(int(id&^generatedSpace>>20)))
			}
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
	return tokens
}
