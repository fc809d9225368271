package wheel

import (
	"context"
	"os"
	"os/exec"
)

// launcher is the wheel's own launcher without what its debug mode needs: five packages for a balancer in Python that
// nobody asks for here.
const launcher = `
import argparse
from vllm_router.router import Router
from vllm_router.router_args import RouterArgs
parser = argparse.ArgumentParser(prog="vllm-router")
RouterArgs.add_cli_args(parser, use_router_prefix=False)
args = RouterArgs.from_cli_args(parser.parse_args(), use_router_prefix=False)
args._validate_router_args()
Router.from_args(args).start()
`

// Command is vllm-router with those flags, not started. It needs python3 on PATH, and the wheel, which it downloads as Find
// does. The router is the process itself, not a child of it. Errors are Find's.
func Command(ctx context.Context, flags ...string) (*exec.Cmd, error) {
	folder, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("python3", append([]string{"-c", launcher}, flags...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder, "NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1", "COLUMNS=200")
	return cmd, nil
}
