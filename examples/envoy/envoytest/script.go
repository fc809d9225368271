package envoytest

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"syscall"
	"time"
)

// Blocks returns the fenced blocks of a page that are marked exactly with a
// language, such as "sh", in order.
func Blocks(page, language string) []string {
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```"+regexp.QuoteMeta(language)+"\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// ShellBlocks returns the blocks of commands.
func ShellBlocks(page string) []string { return Blocks(page, "sh") }

// RunScript runs sh -eu on the script in dir, env coming on top of this
// process's own, and returns what it prints. It ends everything that the script
// started, in a process group of their own, whatever happens, and after ten
// minutes at the latest. The error is the shell's.
func RunScript(ctx context.Context, dir, script string, env ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return string(out), err
}
