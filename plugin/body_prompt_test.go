package plugin

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// promptIn feeds a body in pieces of that many bytes.
func promptIn(body string, piece int) policy.Prompt {
	var s bodyPrompt
	s.reset(7)
	for len(body) > 0 {
		n := min(piece, len(body))
		s.feed([]byte(body[:n]))
		body = body[n:]
	}
	return s.Prompt
}

// hashesOf tells prompts apart as an index does.
var hashesOf = policy.NewPrefixLayout(1 << 36) // 2^31 shards

// samePrompt compares two prompts by their lengths and hashes, to the last byte: with
// the padding there is a prefix that holds them.
func samePrompt(a, b policy.Prompt) bool {
	var padding [64 << 10]byte
	a.Write(padding[:a.Len()/2+512])
	b.Write(padding[:b.Len()/2+512])
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Prefixes() {
		if hashesOf.Shard(&a, i) != hashesOf.Shard(&b, i) {
			return false
		}
	}
	return true
}

func TestBodyPrompt(t *testing.T) {
	long := strings.Repeat("some words, ", 100)
	chat := `[{"role":"system","content":"` + long + `"},{"role":"user","content":"a \"quoted\" ] } \\"}]`
	for _, tt := range []struct{ name, body, want string }{
		{"chat", `{"messages":` + chat + `}`, chat},
		{"chat, after other members", `{"model":"m","n":1,"stream":true,"stop":["]","\""],"x":{"messages":["no"]},"messages":` + chat, chat},
		{"chat, before other members", `{"messages":` + chat + `,"model":"m","tools":[{"type":"function"}],"temperature":0.7}`, chat},
		{"blanks", " {\n\t\"model\" : \"m\" ,\r\n \"messages\" : " + chat + " }", chat},
		{"completion", `{"model":"m","prompt":"` + long + `","n":1}`, long},
		{"completion, escapes as they are spelled", `{"prompt":"a\n\"b\"\\\u00e9` + long + `\\"}`, `a\n\"b\"\\\u00e9` + long + `\\`},
		{"completion, a list", `{"prompt":["` + long + `","b"]}`, `["` + long + `","b"]`},
		{"completion, tokens", `{"prompt":[[1,2,3],[4]],"n":2}`, `[[1,2,3],[4]]`},
		{"responses", `{"model":"m","input":"` + long + `"}`, long},
		{"responses, a list", `{"prompt":{"id":"p"},"input":` + chat + `,"instructions":"x"}`, chat},
		{"cut in the list", `{"messages":[{"role":"system","content":"` + long, `[{"role":"system","content":"` + long},
		{"cut in a string", `{"prompt":"` + long, long},
		{"cut behind a backslash", `{"prompt":"` + long + `\`, long + `\`},
		{"cut before the value", `{"messages":`, ""},
		{"cut in a key", `{"messag`, ""},
		{"the first of two", `{"messages":["a"],"messages":["b"],"prompt":"c"}`, `["a"]`},
		{"messages that are no list", `{"messages":"x","prompt":"y"}`, "y"},
		{"null", `{"messages":null,"input":"y"}`, "y"},
		{"empty", `{"messages":[]}`, "[]"},
		{"nested only", `{"a":{"messages":["x"],"prompt":"x"},"b":[{"input":"x"}]}`, ""},
		{"a prompt's key within a string", `{"a":"\"prompt\":\"x\"","b":"{\"prompt\":\"x\"}"}`, ""},
		{"longer and shorter keys", `{"messagesx":["x"],"prompts":"x","inpu":"x","":"x","input2":"x","` + strings.Repeat("k", 300) + `":1,"prompt":"y"}`, "y"},
		{"an escaped key", `{"messages\n":["x"],"p\u0072ompt":"x","prompt":"y"}`, "y"},
		{"none", `{"model":"m"}`, ""},
		{"nothing", ``, ""},
		{"no object", `["messages",["x"]]`, ""},
		{"no JSON", `prompt=x&messages=[y]`, ""},
		{"no JSON at the top", `{"a":1]"prompt":"x"}`, ""},
		{"no colon", `{"prompt","x"}`, ""},
		{"a form", "--boundary\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx", ""},
	} {
		want := promptWith([]byte(tt.want))
		for _, piece := range []int{1 << 20, 1, 2, 3, 7, 64} {
			if got := promptIn(tt.body, piece); !samePrompt(got, *want) {
				t.Errorf("%s, in pieces of %d: %d bytes, want %d", tt.name, piece, got.Len(), want.Len())
			}
		}
	}
}

// Two chats that begin alike have the prefixes of what is alike in common, whatever
// else their bodies say.
func TestChatsThatBeginAlike(t *testing.T) {
	system := `{"role":"system","content":"` + strings.Repeat("You are helpful. ", 200) + `"}`
	bodies := []string{
		`{"model":"m","messages":[` + system + `,{"role":"user","content":"one"}],"seed":1}`,
		`{"seed":2,"temperature":1,"messages":[` + system + `,{"role":"user","content":"another"}]}`,
	}
	a, b := promptIn(bodies[0], 1<<20), promptIn(bodies[1], 100)
	if a.Prefixes() < 10 || a.Prefixes() != b.Prefixes() {
		t.Fatalf("%d and %d prefixes", a.Prefixes(), b.Prefixes())
	}
	for i := range a.Prefixes() {
		if hashesOf.Shard(&a, i) != hashesOf.Shard(&b, i) {
			t.Errorf("prefix %d differs", i)
		}
	}
}

// The end of the prompt ends the reading.
func TestBodyPromptEndsEarly(t *testing.T) {
	for _, body := range []string{`{"messages":[{"a":"]"}]`, `{"model":"m","prompt":"x"`, `[`, `{}`, `x`, `{"a":1}`} {
		var s bodyPrompt
		s.reset(7)
		s.feed([]byte(body[:len(body)-1]))
		if s.done() {
			t.Errorf("%s: over too early", body)
		}
		s.feed([]byte(body[len(body)-1:]))
		if !s.done() {
			t.Errorf("%s: not over", body)
		}
	}
}

func TestBodyPromptAllocatesNothing(t *testing.T) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("words ", 1000) + `\n"}],"user":"u"}`)
	var s bodyPrompt
	if n := testing.AllocsPerRun(100, func() {
		s.reset(7)
		for b := body; len(b) > 0; b = b[min(len(b), 1000):] {
			s.feed(b[:min(len(b), 1000)])
		}
		if s.Len() < 6000 {
			t.Fatal("no prompt")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// gjson is the judge of whole and valid bodies. Of any body, pieces make no
// difference, and its beginning has a beginning of its prompt.
func FuzzBodyPrompt(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":"x"}],"n":1}`, `{"prompt":"a\"b\\","input":"c"}`, `{"a":{"prompt":1},"input":[1,"]"]}`,
		`{"messages":null,"prompt":{"id":1},"input":""}`, `{"a":[{"b":"\\\""}],"prompt":"x`, `[{"prompt":"x"}]`, `{"a":-1e5 ,"prompt" : "x"}`,
	} {
		f.Add([]byte(seed), uint8(100))
	}
	f.Fuzz(func(t *testing.T, body []byte, cut uint8) {
		n := int(cut) * len(body) / 256
		var whole, pieces bodyPrompt
		whole.reset(7)
		whole.feed(body)
		pieces.reset(7)
		pieces.feed(body[:n])
		begun := pieces.Len()
		pieces.feed(body[n:])
		if !samePrompt(whole.Prompt, pieces.Prompt) || begun > whole.Len() {
			t.Fatalf("%d bytes in one piece, %d and then %d cut at %d", whole.Len(), begun, pieces.Len(), n)
		}
		root := gjson.ParseBytes(body)
		if !gjson.ValidBytes(body) || !root.IsObject() {
			return
		}
		want := ""
		root.ForEach(func(k, v gjson.Result) bool {
			switch {
			case k.Raw == `"messages"` && v.IsArray(), (k.Raw == `"prompt"` || k.Raw == `"input"`) && v.IsArray():
				want = v.Raw
			case (k.Raw == `"prompt"` || k.Raw == `"input"`) && v.Type == gjson.String:
				want = v.Raw[1 : len(v.Raw)-1]
			default:
				return true
			}
			return false
		})
		if p := promptWith([]byte(want)); !samePrompt(whole.Prompt, *p) {
			t.Fatalf("%d bytes, gjson finds %q", whole.Len(), want)
		}
	})
}

// How fast a prompt of 200 KB is found and hashed.
func BenchmarkBodyPrompt(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`some words of a prompt, \"quoted\"\n`, 5700) + `"}],"n":1}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var s bodyPrompt
	for b.Loop() {
		s.reset(7)
		s.feed(body)
	}
}
