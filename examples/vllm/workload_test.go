//go:build vllm

package vllm

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strings"
)

// plan is what client.py plays: all sessions at once, the turns of each one after the other.
type plan struct {
	Gateway  string    `json:"gateway"`
	MaxToken int       `json:"max_tokens"` // of each answer, all of which are generated
	Meet     int       `json:"meet"`       // before this turn, from 0, sessions wait for each other; 0: they do not
	Finish   bool      `json:"finish"`     // say so when a session is over
	Sessions []session `json:"sessions"`
}

type session struct {
	ID    string `json:"id"`
	Turns []turn `json:"turns"`
}

// turn is what a turn adds to the conversation: messages before the request, and the answer's stand-in after it.
type turn struct {
	Messages []message `json:"messages"`
	Answer   string    `json:"answer"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// agents are sessions of six turns that share no text: a system prompt of 500 to 1,000 tokens, then 100 to 500 tokens of
// a user or tool and 50 to 250 of the model a turn. The texts are the same in every call, the ids follow from set.
func agents(n, set int) []session {
	draw := rand.New(rand.NewPCG(1, 0))
	sessions := make([]session, n)
	for i := range sessions {
		sessions[i] = session{id(set, i), conversation(draw, fmt.Sprintf("%d. %s", i, text(draw, 500, 1000)), 6)}
	}
	return sessions
}

// samples are sessions of two turns in groups, as a trainer draws several rollouts of a prompt: those of a group begin
// with the same 3,100 to 5,500 tokens and go on differently.
func samples(groups, per, set int) []session {
	draw := rand.New(rand.NewPCG(2, 0))
	var sessions []session
	for g := range groups {
		prompt := fmt.Sprintf("%d. %s", g, text(draw, 3000, 5000))
		task := message{"user", text(draw, 100, 500)}
		for range per {
			turns := conversation(draw, prompt, 2)
			turns[0].Messages[1] = task
			sessions = append(sessions, session{id(set, len(sessions)), turns})
		}
	}
	return sessions
}

func conversation(draw *rand.Rand, system string, n int) []turn {
	turns := make([]turn, n)
	for i := range turns {
		turns[i] = turn{[]message{{"user", text(draw, 100, 500)}}, text(draw, 50, 250)}
	}
	turns[0].Messages = append([]message{{"system", system}}, turns[0].Messages...)
	return turns
}

// text is made of words, and of least to most characters, each of which is a token.
func text(draw *rand.Rand, least, most int) string {
	words := strings.Fields("the plan file test a fix run error line value call tool output read write next check result")
	var b strings.Builder
	for n := least + draw.IntN(most-least+1); b.Len() < n; {
		b.WriteString(words[draw.IntN(len(words))] + " ")
	}
	return b.String()
}

// id looks like the UUIDs that clients take for session ids.
func id(set, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "set %d, session %d", set, i))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
