//go:build cgo

package nccl

import (
	"fmt"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// TestNVRTC compiles kernels.cu by a real NVRTC (see cudatest.NeedCompiler).
func TestNVRTC(t *testing.T) {
	cudatest.NeedCompiler(t)
	for _, arch := range []string{"sm_75", "sm_80", "sm_90"} {
		made, err := cuda.Translate(arch, "kernels.cu", source, cuda.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if w := made.Warnings(); len(w) > 0 {
			t.Errorf("%s: the compiler says: %s", arch, strings.Join(w, "\n"))
		}
		usage := made.Usage()
		for _, d := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
			for _, kind := range []string{"divide", "tree"} {
				name := fmt.Sprintf("%s_%s", kind, d)
				if u := usage[name]; u.Registers == 0 || u.Registers > 64 || u.SpillStores > 0 {
					t.Errorf("%s, %s: takes %+v, want some registers, at most 64, and none spilled", arch, name, u)
				}
			}
		}
		for _, word := range []string{"div.approx", "div.full", "div.rn.ftz"} {
			if strings.Contains(made.PTX, word) {
				t.Errorf("%s: a mean is divided by %s", arch, word)
			}
		}
	}
}
