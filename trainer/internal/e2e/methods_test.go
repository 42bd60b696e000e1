package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// boards are the presets on the checkerboard: those of every method whose model
// is a small machine.
func (s *site) boards() (names []string) {
	s.t.Helper()
	for line := range strings.Lines(s.must("train", "--preset", "help").stdout) {
		if name, _, _ := strings.Cut(line, " "); strings.Contains(name, "-board") {
			names = append(names, name)
		}
	}
	if len(names) < 6 {
		s.t.Fatalf("presets on the checkerboard are %q, want more", names)
	}
	return names
}

// Every method has the losses of one rank on two and four, goes on after a resume
// as if there had been none, and has with --deterministic the weights bit for bit,
// for a batch that 8 does not divide.
func TestMethodsOnRanks(t *testing.T) {
	long(t)
	s := newSite(t)
	const last = "/ckpt/step-00000008"
	for _, preset := range append(s.boards(), "fisher-200") {
		t.Run(preset, func(t *testing.T) {
			s := newSite(t)
			batch, data := "100", "checkerboard:train=500"
			if strings.Contains(preset, "ksd") { // of pairs
				batch = "104"
			}
			common := []string{"train", "--preset", preset, "--batch", batch, "--samples", "0", "--threads", "1"}
			if preset == "fisher-200" {
				data = "gauss:dim=200,modes=1,sd=1,train=500"
				common = append(common, "--estimator", "variational", "--lower-steps", "2")
			}
			common = append(common, "--data", data)
			run := func(n int, more ...string) string {
				out := fmt.Sprint("on", n, len(more))
				s.must(on(n, append(slices.Clone(common), append(more, "--steps", "8", "--out", out)...))...)
				return out
			}
			one, two, four := run(0), run(2), run(4)
			s.close(one, two, 1e-5)
			s.close(one, four, 1e-5)
			s.must(on(2, append(slices.Clone(common), "--steps", "5", "--out", "part"))...)
			s.must(on(2, []string{"train", "--resume", "--out", "part", "--steps", "8"})...)
			s.sameFiles(two+last, "part"+last)
			var want map[string][]byte
			for _, n := range []int{0, 2, 4} {
				got := s.content(run(n, "--deterministic") + last)
				delete(got, "state.json")
				if want == nil {
					want = got
				}
				for name := range want {
					if !bytes.Equal(got[name], want[name]) {
						t.Errorf("%d ranks: %s is not that of one rank", n, name)
					}
				}
			}
		})
	}
}
