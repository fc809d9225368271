package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The checkout's own build (dist/pinwheel.wasm: this folder, this user, warm caches) has the bytes of one by somebody else:
// in another folder, with another home, umask and time zone, empty caches, Go under another name, files of another age and,
// where this process may become somebody else, another user. Nothing but the sources and the version of Go is shared.
func TestBuildIsReproducible(t *testing.T) {
	here, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatalf("%v; build it with: make wasm", err)
	}
	there, err := os.MkdirTemp("", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeAll(t, there) })
	root := filepath.Join(there, "some where", "tree")
	copySources(t, root)
	goroot := filepath.Join(there, "go")
	if err := os.Symlink(goEnv(t, "GOROOT"), goroot); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + filepath.Join(goroot, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(there, "home"), "GOROOT=" + goroot,
		"GOCACHE=" + filepath.Join(there, "cache"), "GOMODCACHE=" + filepath.Join(there, "modules"), "GOTOOLCHAIN=local", "GOWORK=off",
		"GOFLAGS=-modcacherw", "GOPROXY=file://" + filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"), "GONOSUMDB=*", "TMPDIR=" + there,
		"GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "TZ=Pacific/Kiritimati", "SOURCE_DATE_EPOCH=1", "USER=somebody", "LANG=tr_TR.UTF-8"}
	goThere := func(user *syscall.Credential, args ...string) {
		cmd := exec.Command("sh", append([]string{"-c", `umask 077; exec go "$@"`, "go"}, args...)...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = root, env, &syscall.SysProcAttr{Credential: user}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	goThere(nil, "list", "-deps", "./plugin/wasm") // the modules, out of this user's cache
	var somebody *syscall.Credential
	if os.Getuid() == 0 {
		somebody = &syscall.Credential{Uid: 65534, Gid: 65534}
		giveAway(t, there, 65534)
	}
	goThere(somebody, "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags=-s -w -buildid=", "-o", "m.wasm", "./plugin/wasm")
	if elsewhere, err := os.ReadFile(filepath.Join(root, "m.wasm")); err != nil {
		t.Fatal(err)
	} else if !bytes.Equal(here, elsewhere) {
		t.Errorf("dist/pinwheel.wasm (%d bytes) is not what these sources build elsewhere (%d bytes); run: make wasm", len(here), len(elsewhere))
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// copySources copies what the module is made of, each file of an age of its own.
func copySources(t *testing.T, root string) {
	t.Helper()
	age := time.Unix(1, 0)
	for _, name := range []string{"go.mod", "go.sum", "build/version", "plugin", "policy"} {
		from := filepath.Join("../..", name)
		err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			to := filepath.Join(root, strings.TrimPrefix(path, "../.."))
			if d.IsDir() {
				return os.MkdirAll(to, 0o700)
			}
			content, err := os.ReadFile(path)
			age = age.Add(time.Hour)
			return errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), os.WriteFile(to, content, 0o400), os.Chtimes(to, age, age))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func giveAway(t *testing.T, dir string, user int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// removeAll removes what another umask made, too.
func removeAll(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return errors.Join(err, os.Chmod(path, 0o700))
		}
		return err
	})
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}
