#include "textflag.h"

// func trap()
// wasm's unreachable. (That the package has an assembly file also lets it declare
// the SDK's functions, which go:linkname names, without a body.)
TEXT ·trap(SB), NOSPLIT, $0-0
	UNDEF
