package wheel

import (
	"encoding/hex"
	"path/filepath"
	"testing"
)

func TestPlace(t *testing.T) {
	for name, want := range map[string]string{
		"vllm_router/router.py":                       vllmRouter.Main,
		"vllm_router.libs/libssl.so":                  filepath.Join("vllm_router.libs", "libssl.so"),
		"vllm_router_rs.abi3.so":                      "vllm_router_rs.abi3.so",
		"vllm_router-0.1.17.dist-info/METADATA":       "",
		"vllm_router-0.1.17.dist-info/licenses/x/y.z": "",
	} {
		if got := place(name); got != want {
			t.Errorf("%s goes to %q, want %q", name, got, want)
		}
	}
}

// A digest that cannot match would make every download fail.
func TestDigestsAreDigests(t *testing.T) {
	if len(vllmRouter.SHA256) == 0 {
		t.Error("the wheel is not pinned")
	}
	for _, sum := range vllmRouter.SHA256 {
		if b, err := hex.DecodeString(sum); err != nil || len(b) != 32 {
			t.Errorf("%q is no sha256: %v", sum, err)
		}
	}
}
