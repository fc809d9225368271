// Package wheel finds the router that tests compare this project with: vllm-router, an Apache-2.0 program of the vLLM
// project, as it is published on PyPI.
package wheel

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/build/pypi"
)

// Version is the one compared with.
const Version = "0.1.17"

// vllmRouter is the whole wheel but its metadata: a Python package, an extension module, and the libraries beside it.
var vllmRouter = pypi.Wheel{
	Project: "vllm-router",
	Version: Version,
	SHA256: []string{
		"85c96bea4d573a49b5a8ae4c72ee3dfe733aba26b6f1ff1256e6142f1f42694d", // Linux x86-64, glibc 2.28
		"1ec4d5ce14c19431cc84e36238507dff89020ab024d99f042f091f5e9f2c895a", // Linux arm64, glibc 2.28
	},
	Place: place,
	Main:  filepath.Join("vllm_router", "router.py"),
}

func place(name string) string {
	if strings.Contains(name, ".dist-info/") {
		return ""
	}
	return filepath.FromSlash(name)
}

// Find returns a folder for PYTHONPATH, from the user's cache, downloaded on first use: 24 MB. There is a wheel for
// glibc Linux only. The error is one of package pypi or of the file system.
func Find(ctx context.Context) (string, error) {
	cache, err := pypi.UserCache("vllm-router")
	if err != nil {
		return "", err
	}
	folder, err := cache.Folder(ctx, vllmRouter)
	if err != nil {
		return "", fmt.Errorf("vllm-router: %w", err)
	}
	return folder, nil
}
