package differential

import "testing"

func TestDifference(t *testing.T) {
	got := Difference("a\nb\nc\nd", "a\nc\nx\nd")
	if want := "  a\n- b\n  c\n+ x\n  d\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}
