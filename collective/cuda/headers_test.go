//go:build cgo

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/abi"
)

// realLike makes of our declarations headers as NVIDIA's are: the names without
// EB_, functions instead of tables, and no word of how structures lie. edit changes them.
func realLike(t *testing.T, edit func(string) string) string {
	t.Helper()
	folder := t.TempDir()
	for ours, real := range map[string]string{"driver.h": "cuda.h", "nvrtc.h": "nvrtc.h"} {
		text, err := abi.Files.ReadFile(ours)
		ok(t, err)
		s := regexp.MustCompile(`\bEB_(CU_|CUDA_ERROR|CUDA_SUCCESS|CUDA_GRAPH_INSTANTIATE|NVRTC_SUCCESS)`).ReplaceAllString(string(text), "$1")
		s = strings.NewReplacer("EBTRAIN_CUDA_ABI", "REAL", "EB_", "REAL_", "eb_", "real_").Replace(s)
		if from := strings.Index(s, "// The structures lie here"); from >= 0 {
			s = s[:from] + s[strings.LastIndex(s, "#endif"):]
		}
		if real == "cuda.h" {
			for name, code := range cuda.Codes() {
				if !strings.Contains(s, name+" =") {
					s += fmt.Sprintf("\nenum { %s = %d };", name, code)
				}
			}
			s += "\n#define CUDA_VERSION 13000\n#define X(name, args) CUresult name args;\nREAL_CUDA_FUNCTIONS(X)\nREAL_CUDA_NEWER(X)\n#undef X\n"
		} else {
			s += "\n#define X(result, name, args) result name args;\nREAL_NVRTC_FUNCTIONS(X)\n#undef X\n"
		}
		ok(t, os.WriteFile(filepath.Join(folder, real), []byte(edit(s)), 0o666))
	}
	return folder
}

// TestCheckHeaders: headers that agree pass, and each kind of difference is named.
func TestCheckHeaders(t *testing.T) {
	same := func(s string) string { return s }
	folder := realLike(t, same)
	report, err := cuda.CheckHeaders([]string{t.TempDir(), folder})
	ok(t, err)
	want := fmt.Sprintf("%[1]s/cuda.h: as declared\n%[1]s/nvrtc.h: as declared", folder)
	if report != want {
		t.Errorf("got %q, want %q", report, want)
	}
	report, err = cuda.CheckHeaders(nil)
	if !errors.Is(err, cuda.ErrNotCompared) || report != "" || err.Error() != "cuda.h: not compared: not found\nnvrtc.h: not compared: not found" {
		t.Errorf("without headers: %q, %v", report, err)
	}
	lacking := realLike(t, func(s string) string { return "#include <nv/target>\n" + s })
	report, err = cuda.CheckHeaders([]string{lacking})
	if !errors.Is(err, cuda.ErrNotCompared) || !strings.Contains(err.Error(), "cuda.h: not compared: it does not compile by itself: ") || !strings.Contains(err.Error(), "nv/target") {
		t.Errorf("without what a header includes: %q, %v", report, err)
	}
	ok(t, os.MkdirAll(filepath.Join(lacking, "cccl/nv"), 0o777))
	ok(t, os.WriteFile(filepath.Join(lacking, "cccl/nv/target"), nil, 0o666))
	if report, err = cuda.CheckHeaders([]string{lacking}); err != nil || !strings.Contains(report, "cuda.h: as declared") {
		t.Errorf("with it in cccl: %q, %v", report, err)
	}
	folder = realLike(t, func(s string) string {
		return regexp.MustCompile(`(?m)^.*// since 12\.8$`).ReplaceAllString(strings.Replace(s, "CUDA_VERSION 13000", "CUDA_VERSION 12060", 1), "")
	})
	if report, err = cuda.CheckHeaders([]string{folder}); err != nil || !strings.Contains(report, "cuda.h: as declared") {
		t.Errorf("without what came with CUDA 12.8: %q, %v", report, err)
	}
	newer := regexp.MustCompile(`(?m)^.*// since [0-9.]+$|(?s:typedef uint64_t CUgraphConditionalHandle;.*} CUgraphNodeParams;)`)
	folder = realLike(t, func(s string) string {
		s = strings.NewReplacer("CUDA_VERSION 13000", "CUDA_VERSION 12000", "#if defined REAL_REAL_CUDA_H && CUDA_VERSION < 12040", "#if 1").Replace(s)
		return newer.ReplaceAllString(s, "")
	})
	if report, err = cuda.CheckHeaders([]string{folder}); err != nil || !strings.Contains(report, "cuda.h: as declared") {
		t.Errorf("without what came with CUDA 12.4: %q, %v", report, err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"a constant":          {"CU_EVENT_DISABLE_TIMING = 2", "CU_EVENT_DISABLE_TIMING = 4", "CU_EVENT_DISABLE_TIMING"},
		"an error's number":   {"CUDA_ERROR_NOT_READY = 600", "CUDA_ERROR_NOT_READY = 601", "CUDA_ERROR_NOT_READY"},
		"a code's number":     {"CUDA_ERROR_DEINITIALIZED = 4 ", "CUDA_ERROR_DEINITIALIZED = 3 ", "CUDA_ERROR_DEINITIALIZED"},
		"an argument's type":  {"cuMemAlloc_v2, (CUdeviceptr *p, size_t bytes)", "cuMemAlloc_v2, (CUdeviceptr *p, unsigned bytes)", "cuMemAlloc_v2"},
		"an argument more":    {"cuGraphLaunch, (CUgraphExec exec,", "cuGraphLaunch, (CUgraphExec exec, int more,", "cuGraphLaunch"},
		"a newer function":    {"cuFuncLoad, (CUfunction f)", "cuFuncLoad, (CUmodule f)", "cuFuncLoad"},
		"a newer constant":    {"CU_GRAPH_NODE_TYPE_CONDITIONAL = 13", "CU_GRAPH_NODE_TYPE_CONDITIONAL = 14", "CU_GRAPH_NODE_TYPE_CONDITIONAL"},
		"a structure's order": {"CUgraphConditionalHandle handle;\n\tint type; // an enumeration\n\tunsigned int size;", "int type;\n\tunsigned int size;\n\tCUgraphConditionalHandle handle;", "CUgraphNodeParams.conditional.handle"},
		"a structure's size":  {"reserved1[29]", "reserved1[30]", "CUgraphNodeParams"},
		"a function less":     {"X(cuEventQuery, (CUevent event))", "", "cuEventQuery"},
		"a function of NVRTC": {"nvrtcGetCUBINSize, (nvrtcProgram p, size_t *n)", "nvrtcGetCUBINSize, (nvrtcProgram p, int *n)", "nvrtcGetCUBINSize"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := realLike(t, func(s string) string { return strings.Replace(s, c.old, c.new, 1) })
			_, err := cuda.CheckHeaders([]string{folder})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "differs from this program's declarations") {
				t.Errorf("got %v", err)
			}
		})
	}
}
