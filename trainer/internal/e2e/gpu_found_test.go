package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// without lets programs find all of the libraries but some, by the beginnings of their names.
func (s *site) without(names ...string) *site {
	s.t.Helper()
	from, to := cudatest.Folder(s.t), s.t.TempDir()
	all, err := filepath.Glob(filepath.Join(from, "*")) // with what their kernels are compiled with
	if err != nil {
		s.t.Fatal(err)
	}
link:
	for _, file := range all {
		for _, n := range names {
			if strings.HasPrefix(filepath.Base(file), n) {
				continue link
			}
		}
		if err := os.Symlink(file, filepath.Join(to, filepath.Base(file))); err != nil {
			s.t.Fatal(err)
		}
	}
	s.env = append(s.env, cuda.LibsVariable+"="+to+":-")
	return s
}

// TestGPULacking: where libraries are missing that can be done without, a run goes on, has
// the losses of one that has them, to rounding, and says what it does instead. cuDNN without
// the cuBLASLt that it needs is a broken installation: one sentence.
func TestGPULacking(t *testing.T) {
	long(t)
	newSite(t).agree(func(s *site, seed string) []string {
		s.withGPUs(2)
		env := s.env
		args := func(out string) []string { return onGPU(out, "--steps", "2", "--seed", seed) }
		s.must(args("whole")...)
		s.without("libcudnn", "libcublas").must(args("plain")...)
		s.wantLog("plain", 0, "convolutions are done by plain kernels, which takes longer: cuda: cuDNN was not found")
		s.wantLog("plain", 0, "matrix products are done by plain kernels, which takes longer: cuda: cuBLASLt was not found")
		s.env = env
		s.freshChoices().without("libcudnn", "libnccl").must(on(2, args("staged"))...) // choices of another machine
		s.wantLog("staged", 1, "convolutions are done by plain kernels, which takes longer: cuda: cuDNN was not found")
		s.wantLog("staged", 1, "ranks reduce through pinned host memory, and steps are not captured (")
		s.wantLog("staged", 1, "NCCL is missing")
		s.env = env
		e := s.without("libcublas").run(args("broken")...)
		if last := strings.TrimSpace(e.stderr); e.code != 1 || !strings.Contains(last, "cuDNN cannot be used: ") || !strings.Contains(last, "needs cuBLASLt: cuda: cuBLASLt was not found: pip install nvidia-cublas") || strings.Contains(last, "\n") {
			s.t.Errorf("want exit code 1 and one sentence of cuBLASLt, got %v", e)
		}
		s.env = env
		return []string{"whole", "plain", "staged"}
	})
}

// TestGPUAuto: --device auto takes a GPU where there is one, and says which; and what the
// environment names that is not there, once.
func TestGPUAuto(t *testing.T) {
	long(t)
	s := newSite(t).withGPUs(2)
	e := s.must(tiny("auto", "--device", "auto", "--samples", "0", "--steps", "1")...)
	if !strings.Contains(e.stdout, " on cuda (GPU 0, Double H100, f32, cuDNN 9.19.0, cuBLASLt ") || strings.Contains(e.stdout, "VISIBLE") {
		t.Errorf("the device is not said: %v", e)
	}
	s.env = append(s.env, "CUDA_VISIBLE_DEVICES=0,9")
	e = s.must(on(2, onGPU("shared", "--steps", "1"))...)
	want := `(CUDA_VISIBLE_DEVICES="0,9" names a device that is not there, number 2 of its list: the driver leaves out that and all behind it, so 1 of 2 are used)`
	if strings.Count(e.stdout+e.stderr, "VISIBLE") != 1 || !strings.Contains(e.stdout, want) {
		t.Errorf("want %q once, got %v", want, e)
	}
	s.wantLog("shared", 1, "ranks share a GPU, which NCCL refuses")
}
