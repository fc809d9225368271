package envoytest

import (
	"slices"
	"strings"
	"testing"
)

func TestShellBlocks(t *testing.T) {
	page := "a\n```sh\none\n```\n```sh skip\ntwo\n```\n```text\nthree\n```\n```sh\nfour\nfive\n```\n"
	if got, want := ShellBlocks(page), []string{"one\n", "four\nfive\n"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Blocks(page, "text"); !slices.Equal(got, []string{"three\n"}) {
		t.Errorf("text %q", got)
	}
}

func TestRunScript(t *testing.T) {
	dir := t.TempDir()
	out, err := RunScript(t.Context(), dir, "pwd; echo $GIVEN", "GIVEN=yes")
	if err != nil || !strings.HasSuffix(out, dir+"\nyes\n") {
		t.Errorf("printed %q, %v", out, err)
	}
	if out, err := RunScript(t.Context(), dir, "echo before; false; echo after"); err == nil || out != "before\n" {
		t.Errorf("printed %q, %v, want an error at the first command that fails", out, err)
	}
}
