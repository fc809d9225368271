package suite

import (
	"errors"
	"os"
	"testing"
)

// Whatever the text, Parse returns a suite or mistakes that have a place, and soon.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/passes.yaml", "testdata/fails.yaml", "testdata/invalid.txt", "example.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("cases: &c [{name: a, plugin: {config: [*c, *c]}}]"))
	f.Add([]byte("plugin: {config: &a [&b [&c [x,x,x,x,x,x,x,x], *c,*c,*c,*c,*c,*c], *b,*b,*b,*b,*b,*b,*b]}\ncases: []"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("testdata/fuzz.yaml", text)
		if err == nil {
			if len(s.Cases()) == 0 {
				t.Error("a suite without cases")
			}
			return
		}
		invalid := (*Invalid)(nil)
		if s != nil || !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
			t.Fatalf("suite %v, error %v", s, err)
		}
		for _, p := range invalid.Problems {
			if p.Text == "" || p.Line < 0 || p.Column < 0 {
				t.Errorf("%+v", p)
			}
		}
	})
}
