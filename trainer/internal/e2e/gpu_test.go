package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// withGPUs lets programs find so many GPUs, which are doubles that compute on the CPU.
// What is compiled for them, and chosen, is kept for all tests.
func (s *site) withGPUs(n int, knobs ...string) *site {
	s.t.Helper()
	folder := cudatest.Folder(s.t)
	s.env = append(s.env, cuda.LibsVariable+"="+folder+":-", cuda.CacheVariable+"="+filepath.Join(folder, "kernels"), fmt.Sprintf("%sDEVICES=%d", cudatest.Prefix, n))
	warm.Do(func() { s.compile() })
	for _, k := range knobs {
		s.env = append(s.env, cudatest.Prefix+k)
	}
	return s
}

var warm sync.Once

// compile has the kernels of the smallest run compiled and chosen, which may take longer
// than a program has.
func (s *site) compile() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "train"), onGPU("warm", "--steps", "1")[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(clean(os.Environ()), s.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// onGPU are the settings of the smallest run on a GPU.
func onGPU(out string, more ...string) []string {
	return tiny(out, append([]string{"--device", "cuda", "--samples", "0"}, more...)...)
}

// TestGPU trains on one GPU: the losses are those of the CPU, to rounding; those of
// captured and of single steps are equal, bit for bit, and so is a run that was cut in
// two; averages of weights, too.
func TestGPU(t *testing.T) {
	long(t)
	newSite(t).agree(func(s *site, seed string) []string {
		s.withGPUs(1)
		args := func(out, device string, more ...string) []string {
			return tiny(out, append([]string{"--device", device, "--samples", "0", "--steps", "4", "--ema", "0.5", "--seed", seed}, more...)...)
		}
		s.must(args("cpu", "cpu")...)
		e := s.must(args("gpu", "cuda")...)
		if !strings.Contains(e.stdout, "on cuda (GPU 0, Double H100, f32, cuDNN") {
			s.t.Errorf("the device is not said: %v", e)
		}
		s.must(args("single", "cuda", "--cuda-graph", "off")...)
		s.sameFiles("gpu/ckpt", "single/ckpt")
		s.must(args("cut", "cuda", "--steps", "2")...)
		s.must("train", "--resume", "--out", "cut", "--steps", "4")
		s.sameFiles("gpu/ckpt/step-00000004", "cut/ckpt/step-00000004")
		return []string{"cpu", "gpu"}
	})
}

// TestGPUs trains on two and four ranks with a GPU each, by NCCL, and on two that share
// one, through the host's memory. A run that was cut in two has the bits of one that was not.
func TestGPUs(t *testing.T) {
	long(t)
	newSite(t).agree(func(s *site, seed string) []string {
		args := func(out string) []string { return onGPU(out, "--steps", "3", "--seed", seed) }
		s.withGPUs(1).must(args("one")...)
		s.must(on(2, args("shared"))...)
		s.wantLog("shared", 0, "through pinned host memory")
		s.withGPUs(4).must(on(2, args("two"))...)
		s.wantLog("two", 1, "ranks reduce by NCCL")
		s.must(on(4, args("four"))...)
		for ranks, whole := range map[int]string{2: "two", 4: "four"} {
			cut := whole + "-cut"
			s.must(on(ranks, append(args(cut), "--steps", "2"))...)
			s.must(on(ranks, []string{"train", "--resume", "--out", cut, "--steps", "3"})...)
			s.sameFiles(whole+"/ckpt/step-00000003", cut+"/ckpt/step-00000003")
		}
		return []string{"one", "shared", "two", "four"}
	})
}

// TestGPUSharedCapture: ranks that share a GPU cannot have their steps captured, and where they
// must, they say so once and what to do.
func TestGPUSharedCapture(t *testing.T) {
	long(t)
	e := newSite(t).withGPUs(1).run(on(2, onGPU("a", "--steps", "2", "--cuda-graph", "on"))...)
	const want = "it is to be captured, and what ranks reduce through host memory is not: want a GPU for each rank"
	if e.code != 1 || strings.Count(e.stderr, want) != 1 {
		t.Errorf("want exit code 1 and once %q, got %v", want, e)
	}
}

// wantLog wants a text in the log of a rank.
func (s *site) wantLog(run string, rank int, text string) {
	s.t.Helper()
	log := string(s.content(run)[fmt.Sprintf("rank-%d.log", rank)])
	if !strings.Contains(log, text) {
		s.t.Errorf("%s: the log of rank %d lacks %q: %s", run, rank, text, log)
	}
}

// TestGPUKilledRank kills a rank whose peers are inside a captured step, also one that
// takes longer than a launcher waits for ranks that it has told to end.
func TestGPUKilledRank(t *testing.T) {
	long(t)
	// Which of the libraries' kernels are used is found out before: each is timed behind what is slow below.
	newSite(t).withGPUs(2).must(on(2, onGPU("first", "--steps", "1"))...)
	for name, faults := range map[string]string{"quick": "", "slow": "run:cuMemsetD8Async=0=~2000"} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t).withGPUs(2, "FAULT="+faults)
			r := s.start(on(2, onGPU("a", "--steps", "1000000"))...)
			s.awaitStep(r, "a", 3)
			ranks, family := r.ranks(), r.children()
			s.kill(ranks[1])
			e := r.wait()
			gone(t, family)
			if e.code != 128+int(syscall.SIGKILL) {
				t.Errorf("want exit code 137, got %v", e)
			}
			checkObituary(t, e.stderr, 2, ranks[1], "SIGKILL")
		})
	}
}

// TestGPUEnvironment are environments in which nothing can be trained, and one in which
// the CPU takes over.
func TestGPUEnvironment(t *testing.T) {
	long(t)
	s := newSite(t)
	driver := t.TempDir() // alone, without NVRTC and the others
	if err := os.Symlink(filepath.Join(cudatest.Folder(t), "libcuda.so.1"), filepath.Join(driver, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  []string
		want string
	}{
		{"hidden devices", []string{cuda.LibsVariable + "=" + driver + ":-", "CUDA_VISIBLE_DEVICES=7"}, `the NVIDIA driver offers no GPU (CUDA_VISIBLE_DEVICES="7" names none that is there: mend or unset it)`},
		{"no NVRTC", []string{cuda.LibsVariable + "=" + driver + ":-"}, "NVRTC was not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := &site{t: t, dir: t.TempDir(), bin: s.bin, env: c.env}
			e := here.run(onGPU("a", "--steps", "1")...)
			if last := strings.TrimSpace(e.stderr); e.code != 1 || !strings.Contains(last, c.want) || strings.Contains(last, "\n") {
				t.Errorf("want exit code 1 and one sentence with %q, got %v", c.want, e)
			}
		})
	}
	here := &site{t: t, dir: t.TempDir(), bin: s.bin, env: []string{cuda.LibsVariable + "=-"}}
	if e := here.must(tiny("a", "--steps", "1", "--samples", "0")...); !strings.Contains(e.stdout, "on cpu (") || !strings.Contains(e.stdout, "this machine has no NVIDIA driver") {
		t.Errorf("want the CPU, and why, got %v", e)
	}
}

// TestGPUMistakes are machines on which nothing can be trained: one sentence each.
func TestGPUMistakes(t *testing.T) {
	long(t)
	s := newSite(t)
	for _, c := range []struct {
		name  string
		knobs []string
		args  []string
		code  int
		want  string
	}{
		{"no driver", nil, []string{"--device", "cuda"}, 1, "--device cuda: this machine has no NVIDIA driver"},
		{"no graph", nil, []string{"--cuda-graph", "always"}, 2, `unknown --cuda-graph "always"`},
		{"tf32 on the CPU", nil, []string{"--precision", "tf32"}, 1, "--precision tf32: only NVIDIA GPUs"},
		{"an old driver", []string{"DRIVER=11040"}, []string{"--device", "cuda"}, 1, "the NVIDIA driver is too old"},
		{"no GPU", []string{"DEVICES=0"}, []string{"--device", "cuda"}, 1, "--device cuda: the NVIDIA driver offers no GPU"},
		{"an old GPU in bf16", []string{"CAPABILITY=70"}, []string{"--device", "cuda", "--precision", "bf16"}, 1, "--precision bf16: no bf16"},
		{"too little memory", []string{"MEMORY=4000000"}, []string{"--device", "cuda"}, 1, "memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := &site{t: t, dir: t.TempDir(), bin: s.bin, env: []string{cuda.LibsVariable + "=-"}}
			if c.knobs != nil {
				here.env = nil
				here.withGPUs(1, c.knobs...)
			}
			e := here.run(tiny("a", append([]string{"--steps", "2", "--samples", "0"}, c.args...)...)...)
			last := strings.TrimSpace(e.stderr)
			if e.code != c.code || !strings.Contains(last, c.want) || strings.Count(last, "\n") > 0 {
				t.Errorf("want exit code %d and one sentence with %q, got %v", c.code, c.want, e)
			}
		})
	}
}
