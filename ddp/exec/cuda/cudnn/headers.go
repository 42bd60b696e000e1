package cudnn

import (
	"embed"

	"ebtrain/collective/cuda"
)

//go:embed abi.h
var declarations embed.FS

// check compares each constant and each function's type with the header's.
const check = `#include <cudnn.h>
#define EB_REAL_CUDNN_H
#include "./abi.h"
#define X(name, value) _Static_assert((long)EB_##name == (long)name, #name);
EB_CUDNN_CONSTANTS(X)
#undef X
#define X(result, name, args) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(*((eb_cudnn *)0)->name)), #name);
EB_CUDNN_FUNCTIONS(X)
#undef X
`

// CheckHeaders compiles this package's declarations against NVIDIA's own header,
// cudnn.h, which it looks for in the folders, with what that includes: every constant
// and the type of every function must be the same. The report says which header was
// compared, or that none was found.
func CheckHeaders(includeDirs []string) (report string, err error) {
	return cuda.CompareHeader("cudnn.h", check, declarations, includeDirs)
}
