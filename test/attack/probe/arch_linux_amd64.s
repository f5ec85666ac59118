#include "textflag.h"

// func int80(number uintptr) (result uintptr)
TEXT ·int80(SB), NOSPLIT, $0-16
	MOVQ number+0(FP), AX
	INT  $0x80
	MOVQ AX, result+8(FP)
	RET
