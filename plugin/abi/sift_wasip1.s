#include "go_asm.h"
#include "textflag.h"

// func sift(h *headers, buckets *[64]*name, out []found)
//
// R0 h; R1 the data, R2 its end; R3 headers left; R4 the next one's sizes, R5 its name, R6 the name's size, R7 its end, R8 the
// value's size, R9 the header's end; R10 buckets, R11 the known name; R12 out; R13, R14 what is left to compare of the header's name
// and the known one, R15 how many bytes. All but sizes are addresses, of 64 bits: no sum of sizes overflows.
TEXT ·sift(SB), NOSPLIT, $0-40
	MOVD h+0(FP), R0
	MOVD buckets+8(FP), R10
	MOVD out_base+16(FP), R12
	MOVD out_len+24(FP), R15
	MOVD R12, R13
	Loop
		Get R15
		I64Eqz
		I32Eqz
		If
			Get R13
			I32WrapI64
			I64Const $0
			I64Store $found_times // and at
			Get R13
			I32WrapI64
			I64Const $0
			I64Store32 $found_size
			Get R13
			I64Const $found__size
			I64Add
			Set R13
			Get R15
			I64Const $1
			I64Sub
			Set R15
			Br $1
		End
	End

	MOVD headers_data(R0), R1
	MOVD (headers_data+8)(R0), R2
	MOVD headers_count(R0), R3
	Get R1
	Get R2
	I64Add
	Set R2
	Get R1
	I64Const $4
	I64Add
	Tee R4
	Get R3
	I64Const $3
	I64Shl
	I64Add
	Set R5

	Block // left when all is done
	Loop
		Get R3
		I64Eqz
		BrIf $1

		Get R4
		I32WrapI64
		I64Load32U $0
		Tee R6
		Get R5
		I64Add
		Tee R7
		Get R4
		I32WrapI64
		I64Load32U $4
		Tee R8
		I64Add
		I64Const $2
		I64Add
		Tee R9
		Get R2
		I64GtU
		BrIf $1

		// bucketOf. Sizes stand before all names: the eight bytes before the end of any are of the data.
		Get R7
		I64Const $4
		I64Sub
		I32WrapI64
		I64Load32U $0
		Get R6
		I64Add
		I64Const $0x9e3779b1
		I64Mul
		I64Const $26
		I64ShrU
		I64Const $63
		I64And
		I64Const $const_shortNames
		Get R6
		I64Const $4
		I64GeU
		Select
		I64Const $3
		I64Shl
		Get R10
		I64Add
		I32WrapI64
		I64Load $0
		Set R11

		Block // left when the known names of the bucket have been looked at
		Loop
			Get R11
			I64Eqz
			BrIf $1

			Block // left when the names differ
				MOVD (name_text+8)(R11), R15
				Get R15
				Get R6
				I64Ne
				BrIf $0
				Get R6
				I64Eqz
				BrIf $0
				// The last eight bytes, of which some may be of what stands before a short name.
				Get R7
				I64Const $8
				I64Sub
				I32WrapI64
				I64Load $0
				MOVD name_shift(R11), R13
				Get R13
				I64ShrU
				MOVD name_tail(R11), R13
				Get R13
				I64Ne
				BrIf $0
				// The others from the first on, and perhaps some of the last again.
				MOVD name_text(R11), R14
				Get R5
				Set R13
				Loop
					Get R15
					I64Const $8
					I64GtU
					If
						Get R13
						I32WrapI64
						I64Load $0
						Get R14
						I32WrapI64
						I64Load $0
						I64Ne
						BrIf $2
						Get R13
						I64Const $8
						I64Add
						Set R13
						Get R14
						I64Const $8
						I64Add
						Set R14
						Get R15
						I64Const $8
						I64Sub
						Set R15
						Br $1
					End
				End

				MOVD name_number(R11), R13
				Get R13
				I64Const $found__size
				I64Mul
				Get R12
				I64Add
				Set R13
				Get R13
				I32WrapI64
				I64Load32U $found_times
				Tee R14
				I64Eqz
				If
					Get R13
					I32WrapI64
					Get R7
					I64Const $1
					I64Add
					Get R1
					I64Sub
					I64Store32 $found_at
					Get R13
					I32WrapI64
					Get R8
					I64Store32 $found_size
				End
				Get R13
				I32WrapI64
				Get R14
				I64Const $1
				I64Add
				I64Store32 $found_times
				Br $2
			End

			MOVD name_next(R11), R11
			Br $0
		End
		End

		Get R9
		Set R5
		Get R4
		I64Const $8
		I64Add
		Set R4
		Get R3
		I64Const $1
		I64Sub
		Set R3
		Br $0
	End
	End
	RET
