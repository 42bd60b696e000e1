//go:build cgo

package cuda_test

import (
	"errors"
	"slices"
	"testing"

	"ebtrain/collective/cuda"
)

// TestTranslate needs no device, and says as Compile does what is wrong with a source.
func TestTranslate(t *testing.T) {
	machine(t)
	made, err := cuda.Translate("sm_90", "scale.cu", scaleSource, cuda.CompileOptions{Options: []string{"--fmad=false"}})
	ok(t, err)
	if len(made.CUBIN) == 0 {
		t.Error("there is no image")
	}
	_, err = cuda.Translate("sm_90", "wrong.cu", "KERNEL(k", cuda.CompileOptions{})
	if c, is := errors.AsType[*cuda.CompileError](err); !is || c.Name != "wrong.cu" {
		t.Errorf("got %v, want a *CompileError", err)
	}
	if v, err := cuda.CompilerVersion(); v != "13.0" || err != nil {
		t.Errorf("got version %q, %v", v, err)
	}
}

// TestUsage reads a log as NVRTC 12.4 writes it.
func TestUsage(t *testing.T) {
	made := cuda.Translation{Log: `k.cu(35): warning #177-D: function "f" was declared but never referenced

ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'one' for 'sm_90'
ptxas info    : Function properties for one
ptxas         .     1032 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 64 registers, 36864 bytes smem
ptxas info    : Compiling entry function 'two' for 'sm_90'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, 376 bytes cmem[0]
`}
	want := map[string]cuda.Usage{"one": {64, 36864, 1032, 16, 20}, "two": {Registers: 10}}
	got := made.Usage()
	for name, u := range want {
		if got[name] != u {
			t.Errorf("%s: got %+v, want %+v", name, got[name], u)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d kernels, want %d: %v", len(got), len(want), got)
	}
	if w := made.Warnings(); !slices.Equal(w, []string{`k.cu(35): warning #177-D: function "f" was declared but never referenced`}) {
		t.Errorf("got %q", w)
	}
}
