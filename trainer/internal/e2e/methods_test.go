package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// setup is what a method is trained on.
type setup struct {
	preset string
	flags  []string // data, batch, and sizes that take little time
}

// setups are one or more of every method: presets on the checkerboard, which are
// those of small machines, and small networks for the methods that have pictures
// only.
func (s *site) setups() (all []setup) {
	s.t.Helper()
	for line := range strings.Lines(s.must("train", "--preset", "help").stdout) {
		preset, _, _ := strings.Cut(line, " ")
		if !strings.Contains(preset, "-board") {
			continue
		}
		batch := "100"
		if strings.Contains(preset, "ksd") { // of pairs
			batch = "104"
		}
		all = append(all, setup{preset, []string{"--data", "checkerboard:train=500", "--batch", batch}})
	}
	if len(all) < 6 {
		s.t.Fatalf("setups on the checkerboard are %v, want more", all)
	}
	all = append(all, setup{"fisher-200", []string{"--data", "gauss:dim=200,modes=1,sd=1,train=500", "--estimator", "variational", "--lower-steps", "2"}})
	return append(all, setup{"lebm-svhn", []string{"--data", "synth:train=60", "--batch", "12", "--ngf", "2", "--nef", "8", "--latent", "4", "--prior-steps", "4", "--posterior-steps", "3"}})
}

// Every method has the losses of one rank on two and four, goes on after a resume
// as if there had been none, and has with --deterministic the weights bit for bit,
// for a batch that 8 does not divide.
func TestMethodsOnRanks(t *testing.T) {
	long(t)
	s := newSite(t)
	const last = "/ckpt/step-00000008"
	for _, of := range s.setups() {
		t.Run(of.preset, func(t *testing.T) {
			s := newSite(t)
			train := func(n int, out, steps string, more ...string) {
				args := append([]string{"train", "--preset", of.preset, "--steps", steps, "--samples", "0", "--threads", "1", "--out", out}, of.flags...)
				s.must(on(n, append(args, more...))...)
			}
			run := func(n int, more ...string) string {
				out := fmt.Sprint("on", n, len(more))
				train(n, out, "8", more...)
				return out
			}
			one, two, four := run(0), run(2), run(4)
			s.close(one, two, 1e-5)
			s.close(one, four, 1e-5)
			train(2, "part", "5")
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
