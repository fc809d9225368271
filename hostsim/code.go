package hostsim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// code is a module, compiled and linked. It holds nothing of a host's own, so hosts that run the same module in the same
// way share it: to read and to check a module of 3 MB takes some 20 ms even where it need not be compiled.
//
//  1. users counts the programs that hold it.
//  2. Without users it is one of the spareCodes last used, or closed.
type code struct {
	codeKey
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	globals  []int  // indexes of those that snapshots set
	abi      string // such as "0.2.1"
	imports  []Import
	others   []string // imports that are not functions
	bindings []*binding

	linking sync.Once
	linkErr error
	users   int // guarded by codes
}

// codeKey is what makes code differ.
type codeKey struct {
	sum      [sha256.Size]byte
	profile  Profile // for the phases in which functions are legal
	cacheDir string
	bounded  bool // calls may be cut off
}

// spareCodes is the number of codes that are kept for hosts to come.
const spareCodes = 4

// codes are all of the process, the last one used last.
var codes struct {
	sync.Mutex
	list []*code
}

// borrow returns the code of a module, which giveBack is for. ctx bounds the compilation.
func (k codeKey) borrow(ctx context.Context, wasm []byte) (*code, error) {
	if c := k.find(); c != nil {
		return c, nil
	}
	c, err := k.compile(ctx, wasm)
	if err != nil {
		return nil, err
	}
	codes.Lock()
	defer codes.Unlock()
	codes.list = append(codes.list, c)
	return c, nil
}

func (k codeKey) find() *code {
	codes.Lock()
	defer codes.Unlock()
	for _, c := range codes.list {
		if c.sum == k.sum && reflect.DeepEqual(c.codeKey, k) {
			c.users++
			return c
		}
	}
	return nil
}

// giveBack ends one use.
func (c *code) giveBack() (err error) {
	codes.Lock()
	defer codes.Unlock()
	if c.users--; c.users > 0 {
		return nil
	}
	i := slices.Index(codes.list, c)
	codes.list = append(slices.Delete(codes.list, i, i+1), c)
	spare := 0
	for _, c := range codes.list {
		if c.users == 0 {
			spare++
		}
	}
	codes.list = slices.DeleteFunc(codes.list, func(c *code) bool {
		if c.users > 0 || spare <= spareCodes {
			return false
		}
		spare--
		err = errors.Join(err, c.runtime.Close(context.Background()))
		return true
	})
	return err
}

// memoryCache keeps compiled code for the life of the process, for hosts without a directory: tests make many hosts of
// one module, and compiling takes seconds.
var memoryCache = sync.OnceValue(wazero.NewCompilationCache)

// dirCaches are the caches of directories. They live as long as the process, too: reading a module of 5 MB from disk takes
// 40 ms and more.
var (
	dirCachesMu sync.Mutex
	dirCaches   = map[string]wazero.CompilationCache{}
)

func dirCache(dir string) (wazero.CompilationCache, error) {
	dirCachesMu.Lock()
	defer dirCachesMu.Unlock()
	if cache := dirCaches[dir]; cache != nil {
		return cache, nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err == nil {
		dirCaches[dir] = cache
	}
	return cache, err
}

// compile returns code that has one user and is not linked.
func (k codeKey) compile(ctx context.Context, wasm []byte) (*code, error) {
	cache := memoryCache()
	if k.cacheDir != "" {
		var err error
		if cache, err = dirCache(k.cacheDir); err != nil {
			return nil, fmt.Errorf("hostsim: cache directory: %w", err)
		}
	}
	c := &code{codeKey: k, users: 1}
	c.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
		WithCompilationCache(cache).WithCloseOnContextDone(k.bounded))
	exposed, globals, _ := exposeGlobals(wasm)
	compiled, err := c.runtime.CompileModule(ctx, exposed)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrABI, err), c.runtime.Close(ctx))
	}
	c.compiled, c.globals, c.abi = compiled, globals, abiOf(exportNames(compiled))
	c.imports, c.others = importsOf(compiled), otherImports(wasm)
	return c, nil
}

// link defines one host module for each that the module imports from, holding exactly what it imports, once.
func (c *code) link(ctx context.Context) error {
	c.linking.Do(func() {
		builders := map[string]wazero.HostModuleBuilder{}
		for i := range c.imports {
			im := &c.imports[i]
			b := newBinding(im, i, &c.profile)
			c.bindings = append(c.bindings, b)
			if builders[im.Module] == nil {
				builders[im.Module] = c.runtime.NewHostModuleBuilder(im.Module)
			}
			builders[im.Module].NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(b.run), im.params, im.results).Export(im.Name)
		}
		for name, builder := range builders {
			if _, err := builder.Instantiate(ctx); err != nil {
				c.linkErr = errors.Join(c.linkErr, fmt.Errorf("hostsim: link %s: %w", name, err))
			}
		}
	})
	return c.linkErr
}
