package cudnn

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"ebtrain/collective/cuda"
)

//go:embed abi.h
var declarations []byte

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
	for _, dir := range includeDirs {
		path := filepath.Join(dir, "cudnn.h")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		files := fstest.MapFS{"abi.h": {Data: declarations, Mode: 0o644}}
		if err := cuda.CompileCheck(check, files, includeDirs); err != nil {
			return "", fmt.Errorf("%s differs from this program's declarations: %w", path, err)
		}
		return path + ": as declared", nil
	}
	return "cudnn.h: not found, not compared", nil
}
