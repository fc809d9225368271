package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// anyMachine is a path below a folder in which people and build services keep sources, caches or Go itself. No text of Go's
// own library looks so; /etc and /proc, which do stand in binaries, are not asked about.
var anyMachine = regexp.MustCompile(`(?:/(?:root|home|Users|private|tmp|builds?|workspaces?|runner|usr/local/go|go/pkg/mod)|[A-Z]:\\\\?[Uu]sers)[/\\][\w.@-]+`)

// foldersHere are the folders of this machine that a build of this checkout could tell about: home, checkout, and where Go
// keeps itself, its modules, its cache and its temporary files. They count where the binary was built here.
func foldersHere() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, home)
	}
	dirs = append(dirs, os.TempDir())
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE", "GOCACHE", "GOPATH", "GOMOD").Output()
	if err != nil {
		return dirs // no Go here, so nothing was built here
	}
	for _, dir := range strings.Fields(string(out)) {
		if filepath.Base(dir) == "go.mod" {
			dir = filepath.Dir(dir)
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

// leak names a folder of a building machine that the binary tells about, or is empty. A folder of one letter ("/", "/x")
// is no evidence.
func leak(wasm []byte, dirs []string) string {
	for _, dir := range dirs {
		if len(dir) > 2 && bytes.Contains(wasm, []byte(strings.TrimSuffix(dir, "/")+"/")) {
			return "holds " + dir + "; build with -trimpath"
		}
	}
	if found := anyMachine.Find(wasm); found != nil {
		return "holds " + string(found) + "; build with -trimpath"
	}
	return ""
}
