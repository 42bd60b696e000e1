package cublaslt

import (
	"embed"

	"ebtrain/collective/cuda"
)

//go:embed abi.h
var declarations embed.FS

// check compares each constant and each function's type with the header's.
const check = `#include <cublasLt.h>
#define EB_REAL_CUBLASLT_H
#include "./abi.h"
#define X(name, value) _Static_assert((long)EB_##name == (long)name, #name);
EB_CUBLASLT_CONSTANTS(X)
#undef X
#define X(result, name, args) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(*((eb_cublaslt *)0)->name)), #name);
EB_CUBLASLT_FUNCTIONS(X)
#undef X
_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64, "the size of an algorithm");
_Static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96, "the size of a result of heuristics");
_Static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) == 64 && offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "a result's members");
`

// CheckHeaders compiles this package's declarations against NVIDIA's own header,
// cublasLt.h, which it looks for in the folders, with what that includes: every constant
// and the type of every function must be the same. The report says which header was
// compared, or that none was found.
func CheckHeaders(includeDirs []string) (report string, err error) {
	return cuda.CompareHeader("cublasLt.h", check, declarations, includeDirs)
}
