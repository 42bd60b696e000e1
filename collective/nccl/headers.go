package nccl

import (
	"embed"
	"fmt"
	"strings"

	"ebtrain/collective/cuda"
)

//go:embed abi.h
var declarations embed.FS

// CheckHeaders compares what this package declares with the nccl.h that one of the
// folders holds; cuda_runtime.h must be in one, too. See cuda.CompareHeader.
func CheckHeaders(includeDirs []string) (report string, err error) {
	return cuda.CompareHeader("nccl.h", headerCheck(), declarations, includeDirs)
}

// headerCheck asserts every number, the layout of the config, and the type of
// every function.
func headerCheck() string {
	var b strings.Builder
	b.WriteString("#include <nccl.h>\n#define EB_REAL_NCCL_H\n#include \"./abi.h\"\n")
	numbers := map[string]int{
		"ncclSuccess": success, "ncclInProgress": inProgress, "NCCL_UNIQUE_ID_BYTES": idBytes,
		"ncclUint8": 1, "ncclInt32": 2, "ncclInt64": 4, "ncclFloat32": 7, "ncclFloat64": 8,
		"ncclSum": 0, "ncclMax": 2, "ncclMin": 3,
	}
	for name, n := range numbers {
		fmt.Fprintf(&b, "_Static_assert((int)%s == %d, \"%s\");\n", name, n, name)
	}
	for _, field := range []string{"size", "magic", "version", "blocking", "cgaClusterSize", "minCTAs", "maxCTAs", "netName", "splitShare"} {
		fmt.Fprintf(&b, "_Static_assert(offsetof(ncclConfig_t, %s) == offsetof(eb_nccl_config, %s), \"%s\");\n", field, field, field)
	}
	b.WriteString(`#if defined(__CUDA_BF16_TYPES_EXIST__) || NCCL_VERSION_CODE >= 22800
_Static_assert((int)ncclBfloat16 == 9, "ncclBfloat16");
#endif
#if NCCL_VERSION_CODE >= 22600
_Static_assert(offsetof(ncclConfig_t, trafficClass) == offsetof(eb_nccl_config, trafficClass), "trafficClass");
#endif
_Static_assert(NCCL_CONFIG_UNDEF_INT == (-2147483647 - 1), "NCCL_CONFIG_UNDEF_INT");
#define X(name, args) _Static_assert(__builtin_types_compatible_p(__typeof__(name), __typeof__(*((eb_nccl *)0)->name)), #name);
EB_NCCL_FUNCTIONS(X)
EB_NCCL_TEXTS(X)
`)
	return b.String()
}
