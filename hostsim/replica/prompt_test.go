package replica

import "testing"

// Whatever the body, parsing ends; what it accepts is within bounds, has at most as many blocks as its tokens fill, and
// is the same the second time.
func FuzzParsePrompt(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":"hello"}]}`), true)
	f.Add([]byte(`{"prompt":"hello","max_tokens":3,"stream":true}`), false)
	f.Add([]byte(`{"sim_prompt":{"tokens":200,"blocks":[[1,2],[9,1]]}}`), true)
	f.Add([]byte(`{"sim_prompt":{"tokens":67108864,"blocks":[[18446744073709551615,2]]}}`), false)
	f.Fuzz(func(t *testing.T, body []byte, chat bool) {
		p, err := parsePrompt(body, chat, 64)
		if err != nil {
			return
		}
		if p.tokens < 1 || p.output < 0 || p.output > maxOutput || len(p.blocks) > p.tokens/64 {
			t.Fatalf("%+v with %d blocks", p, len(p.blocks))
		}
		again, err := parsePrompt(body, chat, 64)
		if err != nil || again.tokens != p.tokens || len(again.blocks) != len(p.blocks) {
			t.Fatalf("the second time %+v, error %v", again, err)
		}
		for i := range p.blocks {
			if p.blocks[i] != again.blocks[i] {
				t.Fatalf("block %d is %x, the second time %x", i, p.blocks[i], again.blocks[i])
			}
		}
	})
}
