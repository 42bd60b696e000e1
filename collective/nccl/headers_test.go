//go:build cgo

package nccl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realLike makes of our declarations a header as NVIDIA's is.
func realLike(t *testing.T, edit func(string) string) string {
	t.Helper()
	text, err := declarations.ReadFile("abi.h")
	if err != nil {
		t.Fatal(err)
	}
	s := strings.NewReplacer("EBTRAIN_NCCL_ABI_H", "REAL_H", "EB_NCCL_CONFIG", "ncclConfig_t", "EB_REAL", "NEVER", "EB_", "REAL_", "eb_nccl_config", "ncclConfig_t", "eb_nccl", "real_nccl").Replace(string(text))
	s = strings.Replace(s, "#define ncclConfig_t ncclConfig_t\n", "typedef struct ncclConfig ncclConfig_t;\n", 1)
	s = strings.Replace(s, "typedef struct {\n\tsize_t size;", "struct ncclConfig {\n\tsize_t size;", 1)
	s = strings.Replace(s, "\tint trafficClass;\n} ncclConfig_t;", "\tint trafficClass;\n\tconst char *commName;\n};", 1)
	s = strings.Replace(s, `_Static_assert(sizeof(ncclConfig_t) == 48, "ncclConfig_t of 2.18 has 48 bytes");`, "", 1)
	s += `
#define NCCL_VERSION_CODE 22800
#define NCCL_CONFIG_UNDEF_INT (-2147483647 - 1)
#define NCCL_UNIQUE_ID_BYTES 128
enum { ncclSuccess, ncclInProgress = 7, ncclUint8 = 1, ncclInt32, ncclInt64 = 4, ncclFloat32 = 7, ncclFloat64, ncclBfloat16, ncclSum = 0, ncclMax = 2, ncclMin };
#define X(name, args) ncclResult_t name args;
REAL_NCCL_FUNCTIONS(X)
#undef X
#define X(name, args) const char *name args;
REAL_NCCL_TEXTS(X)
#undef X
`
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "nccl.h"), []byte(edit(s)), 0o666); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestCheckHeaders: a header that agrees passes, also one with a longer config,
// and each kind of difference is named.
func TestCheckHeaders(t *testing.T) {
	if _, err := CheckHeaders([]string{realLike(t, func(s string) string { return s })}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"a number":           {"ncclFloat32 = 7", "ncclFloat32 = 6", "ncclFloat32"},
		"a field":            {"\tint minCTAs;\n", "", "maxCTAs"},
		"an argument's type": {"int root, ncclComm_t comm", "long root, ncclComm_t comm", "ncclBroadcast"},
		"an argument more":   {"(ncclComm_t comm, void *p, size_t bytes,", "(ncclComm_t comm, int more, void *p, size_t bytes,", "ncclCommRegister"},
		"a function less":    {"X(ncclGroupEnd, (void)) \\\n", "\\\n", "ncclGroupEnd"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := realLike(t, func(s string) string {
				if !strings.Contains(s, c.old) {
					t.Fatalf("the header has no %q", c.old)
				}
				return strings.Replace(s, c.old, c.new, 1)
			})
			if _, err := CheckHeaders([]string{folder}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error about %s", err, c.want)
			}
		})
	}
}
