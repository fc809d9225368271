#include "go_asm.h"
#include "textflag.h"

// func (s shard) find(h policy.Hash) int
//
// R0 the pin, R1 the end of the shard, R2 Hi, R3 Lo, R4 the pin's position. Addresses are of 64 bits.
TEXT ·shard·find(SB), NOSPLIT, $0-48
	MOVD s_base+0(FP), R0
	MOVD s_len+8(FP), R1
	MOVD h_Hi+24(FP), R2
	MOVD h_Lo+32(FP), R3
	MOVD $0, R4

	Get R0
	Get R1
	I64Add
	Set R1
	Get R0
	I64Const $1 // behind the schema version
	I64Add
	Set R0

	Block // left at the end of the shard
	Loop
		Get R0
		I64Const $const_pinSize
		I64Add
		Get R1
		I64GtU
		BrIf $1

		Get R0
		I32WrapI64
		I64Load $0
		Get R2
		I64Eq
		If
			Get R0
			I32WrapI64
			I64Load $8
			Get R3
			I64Eq
			If
				MOVD R4, ret+40(FP)
				RET
			End
		End

		Get R0
		I64Const $const_pinSize
		I64Add
		Set R0
		Get R4
		I64Const $1
		I64Add
		Set R4
		Br $0
	End
	End
	MOVD $-1, ret+40(FP)
	RET
