package hostsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ImportError lists the imports that a profile's gateway lacks. It unwraps to ErrImports.
type ImportError struct {
	// Profile is the gateway's name.
	Profile string
	// Missing names each import as module.name, with the reason where the name alone does not tell it.
	Missing []string
}

// Error names every missing import.
func (e *ImportError) Error() string {
	return fmt.Sprintf("%v: %s does not offer %s", ErrImports, e.Profile, strings.Join(e.Missing, ", "))
}

// Unwrap returns ErrImports.
func (e *ImportError) Unwrap() error { return ErrImports }

// abiMarkers are the exports that name an ABI version, with the version. A module should have one; of several the newest
// counts here, where Envoy takes the one that the module lists first.
var abiMarkers = [...][2]string{
	{"proxy_abi_version_0_2_1", "0.2.1"},
	{"proxy_abi_version_0_2_0", "0.2.0"},
	{"proxy_abi_version_0_1_0", "0.1.0"},
}

// load compiles a module, checks that the profile's gateway would take it, and links its imports.
func (h *Host) load(ctx context.Context, wasm, vmConfig []byte) (*program, error) {
	p, err := newProgram(ctx, &h.config, wasm, vmConfig, h.config.CallTimeout > 0)
	if err != nil {
		return nil, err
	}
	if err = h.verdict(p); err == nil {
		err = p.link(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// verdict says why the gateway would refuse the module, or nil.
func (h *Host) verdict(p *program) error {
	if problem := exportProblem(exportNames(p.compiled)); problem != "" {
		return fmt.Errorf("%w: %s", ErrABI, problem)
	}
	if problems := moduleProblems(p.compiled, p.abi); len(problems) > 0 {
		return fmt.Errorf("%w: %s", ErrABI, strings.Join(problems, ", "))
	}
	if err := declaresTooMuch(p.compiled, h.config.MemoryLimitPages); err != nil {
		return err
	}
	if missing := append(h.config.Profile.lacks(p.imports, p.abi), p.others...); len(missing) > 0 {
		return &ImportError{Profile: h.config.Profile.Name, Missing: missing}
	}
	return nil
}

// lacks names what stands in the way of linking imports of a module of that ABI version, "" if it names none.
func (p Profile) lacks(imports []Import, abi string) []string {
	var missing []string
	for _, im := range imports {
		fn := findHostFunc(im.Module, im.Name)
		wasi := im.Module == moduleWASI || im.Module == moduleWASIUnstable
		switch {
		case fn == nil || wasi && !slices.Contains(p.WASI, im.Name):
			if !p.AnyImport {
				missing = append(missing, im.Module+"."+im.Name)
			}
		case abi != "" && !fn.in(abi) && !p.AnyImport:
			missing = append(missing, fmt.Sprintf("%s.%s (a module of ABI %s cannot have it, only one of %s)", im.Module, im.Name, abi,
				strings.ReplaceAll(fn.abis, " ", " or ")))
		case !im.matches(fn):
			missing = append(missing, fmt.Sprintf("%s.%s as %s (it is %s)", im.Module, im.Name, im.Signature, signatureOf(fn)))
		}
	}
	return once(missing)
}

// once drops repetitions: official Go's linker lists some imports twice.
func once(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// exportProblem says why a module with these exports is not a proxy-wasm module, or "".
func exportProblem(names map[string]bool) string {
	if abiOf(names) == "" {
		return "no export proxy_abi_version_0_2_1, proxy_abi_version_0_2_0 or proxy_abi_version_0_1_0 (official Go has it by " +
			"//go:wasmexport, or with proxy-wasm-go-sdk by the import of github.com/pinwheel-proxy/pinwheel/plugin/abi/full)"
	}
	if !names["malloc"] && !names["proxy_on_memory_allocate"] {
		return "no export malloc or proxy_on_memory_allocate"
	}
	return ""
}

func abiOf(names map[string]bool) string {
	for _, m := range abiMarkers {
		if names[m[0]] {
			return m[1]
		}
	}
	return ""
}
