package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
)

// fullGPU is what is said where a GPU's memory is full: what was asked for, what is free,
// who has the rest, and what helps.
var fullGPU = regexp.MustCompile(`GPU \d \(Double H100\) is out of memory: (some was|[\d.]+ [KMG]?i?B were) asked for .+, and [\d.]+ [KMG]?i?B of [\d.]+ [KMG]iB are free; this rank holds most for .+ \([\d.]+ [KMG]?i?B\).*: choose a smaller --batch, narrower networks or fewer unrolled steps(, or try --remat)?$`)

// freshChoices lets programs find the compiled kernels of all tests, but nothing of which of
// the libraries' kernels was chosen.
func (s *site) freshChoices() *site {
	s.t.Helper()
	from, to := filepath.Join(cudatest.Folder(s.t), "kernels"), s.t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "choices.json" {
			continue
		}
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			s.t.Fatal(err)
		}
	}
	s.env = append(s.env, cuda.CacheVariable+"="+to)
	return s
}

// TestGPUFull fills the memory of a GPU at many places: for variables, while kernels are
// timed, for a program and its buckets, for a captured run. Each time one sentence says what
// was asked for, what is free, who has the rest, and which flags help.
func TestGPUFull(t *testing.T) {
	long(t)
	one := newSite(t).withGPUs(2)
	for _, c := range []struct {
		name, knob, says string
		fresh            bool
		more             []string
	}{
		{name: "variable", knob: "FAULT=cuMemAlloc_v2=60=2", says: `B were asked for variable "`},
		{name: "timing", knob: "FAULT=cuMemAlloc_v2=144=2", says: "were asked for kernels that are timed", fresh: true},
		{name: "arena", knob: "FAULT=cuMemAlloc_v2=137=2", says: `MiB were asked for intermediate values of program "step"`},
		{name: "remat", knob: "FAULT=cuMemAlloc_v2=139=2", says: `holds most for intermediate values of program "step"`, more: []string{"--remat"}},
		{name: "graph", knob: "FAULT=cuGraphInstantiateWithParams=1=2,cuGraphInstantiateWithFlags=1=2", says: "some was asked for cuGraphInstantiateWithFlags", more: []string{"--cuda-graph", "on"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &site{t: t, dir: t.TempDir(), bin: one.bin, env: one.env}
			if len(c.more) > 0 { // kernels of another program, which would be timed first
				s.must(onGPU("warm", append([]string{"--steps", "1"}, c.more...)...)...)
			}
			s.env = append([]string{cudatest.Prefix + c.knob}, s.env...)
			if c.fresh {
				s.freshChoices()
			}
			s.isFull(s.run(onGPU("a", append([]string{"--steps", "4"}, c.more...)...)...), c.says)
		})
	}
	t.Run("NCCL", func(t *testing.T) {
		one.onFull(t, "2", "MEMORY=0").fullOfAll(`2.000 MiB were asked for buckets of program "step"`)
	})
	t.Run("staged", func(t *testing.T) {
		s := one.onFull(t, "1", "FAULT=cuMemAlloc_v2=139=2")
		s.isFull(s.run(on(2, onGPU("a", "--steps", "4"))...), `, buckets of program "step" (`)
	})
}

// onFull is the site with so many GPUs, of a knob.
func (s *site) onFull(t *testing.T, gpus, knob string) *site {
	return &site{t: t, dir: t.TempDir(), bin: s.bin, env: append([]string{cudatest.Prefix + knob, cudatest.Prefix + "DEVICES=" + gpus}, s.env...)}
}

// fullOfAll wants says of a GPU on which all but buckets has room. How much that is differs
// between machines, so it is tried out, by steps that are shorter than buckets.
func (s *site) fullOfAll(says string) {
	s.t.Helper()
	tooSmall := regexp.MustCompile(`a step does not fit|were asked for (intermediate values|kernels that are timed)`)
	for memory := 9 << 20; ; memory += 1 << 19 {
		s.env[0] = fmt.Sprintf("%sMEMORY=%d", cudatest.Prefix, memory)
		if e := s.run(on(2, onGPU(fmt.Sprint("run", memory), "--steps", "4"))...); e.code != 1 || !tooSmall.MatchString(e.stderr) {
			s.isFull(e, says)
			return
		}
	}
}

// isFull wants the end of a program whose GPU is full, with says in its sentence.
func (s *site) isFull(e ended, says string) {
	s.t.Helper()
	last := strings.TrimSpace(e.stderr)
	if e.code != 1 || !fullGPU.MatchString(last) || !strings.Contains(last, says) || strings.Contains(last, "\n") {
		s.t.Errorf("want exit code 1 and one sentence with %q, what is free, who has the rest and what helps, got %v", says, e)
	}
	if remat := strings.HasSuffix(last, "or try --remat"); remat == (s.t.Name() == "TestGPUFull/remat") {
		s.t.Errorf("advised to try --remat: %v, want that of who has not", remat)
	}
}
