package e2e

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// setup is what a method is trained on.
type setup struct {
	preset string
	flags  []string // data, batch, and sizes that take little time
}

// setups are one or more of every method but the generative baselines: presets on the checkerboard, which are
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
	all = append(all, setup{"lm-snli", append([]string{"--data", s.prose("text")}, reads...)})
	all = append(all, setup{"lebm-snli", append([]string{"--data", s.prose("prose"), "--latent", "4", "--nef", "8", "--prior-steps", "4", "--posterior-steps", "3"}, reads...)})
	all = append(all, setup{"fisher-200", []string{"--data", "gauss:dim=200,modes=1,sd=1,train=500", "--estimator", "variational", "--lower-steps", "2"}})
	return append(all, setup{"lebm-svhn", []string{"--data", "synth:train=60", "--batch", "12", "--ngf", "2", "--nef", "8", "--latent", "4", "--prior-steps", "4", "--posterior-steps", "3"}})
}

// Every method has the losses of one rank on two and four, goes on after a resume
// as if there had been none, and has with --deterministic the weights bit for bit,
// for a batch that 8 does not divide.
func TestMethodsOnRanks(t *testing.T) {
	long(t)
	for _, of := range newSite(t).setups() {
		t.Run(of.preset, func(t *testing.T) {
			newSite(t).onRanks(5, 8, append([]string{"--preset", of.preset}, of.flags...)...)
		})
	}
}

// So have the generative baselines; and what they cannot be measured by is named.
func TestBaselinesOnRanks(t *testing.T) {
	long(t)
	for preset, width := range map[string]string{"vae-cifar10": "8", "sngan-cifar10": "2"} {
		t.Run(preset, func(t *testing.T) {
			s := newSite(t)
			s.onRanks(2, 3, "--preset", preset, "--width", width, "--batch", "40", "--data", "synth:train=80,test=8")
			s.measures(preset)
		})
	}
}

// measures: a VAE has reconstructions, and SNGAN neither those nor energies, which
// is said of whichever is asked for.
func (s *site) measures(preset string) {
	s.t.Helper()
	e := s.run("evaluate", "--run", "one", "--measures", "rmse")
	if preset == "vae-cifar10" {
		if e.code != 0 || !strings.Contains(e.stdout, "RMSE of reconstruction") {
			s.t.Errorf("reconstructions of a VAE: %v", e)
		}
	} else if want := "--measures rmse of one, a run of --algo sngan: its models give no reconstructions"; e.code != 1 || !strings.Contains(e.stderr, want) {
		s.t.Errorf("reconstructions of a GAN: want exit 1 and %q, got %v", want, e)
	}
	const want = "its models have no energy of samples alone"
	if e := s.run("evaluate", "--run", "one", "--measures", "energy"); e.code != 1 || !strings.Contains(e.stderr, want) {
		s.t.Errorf("energies: want exit 1 and %q, got %v", want, e)
	}
}

// onRanks trains so many steps with these flags on one rank, two and four, on two with
// a stop before the end, and on two, four and one in turn.
func (s *site) onRanks(half, steps int, flags ...string) {
	s.t.Helper()
	last := fmt.Sprintf("/ckpt/step-%08d", steps)
	train := func(n, steps int, out string, more ...string) string {
		args := append([]string{"train", "--steps", fmt.Sprint(steps), "--samples", "0", "--threads", "1", "--out", out}, flags...)
		s.must(on(n, append(args, more...))...)
		return out
	}
	one, two, four := train(0, steps, "one"), train(2, steps, "two"), train(4, steps, "four")
	s.close(one, two, 1e-5)
	s.close(one, four, 1e-5)
	train(2, half, "part")
	s.must(on(2, []string{"train", "--resume", "--out", "part", "--steps", fmt.Sprint(steps)})...)
	s.sameFiles(two+last, "part"+last)
	alone := train(0, steps, "bits", "--deterministic")
	turns := train(2, half, "turns", "--deterministic")
	s.must(on(4, []string{"train", "--resume", "--out", turns, "--steps", fmt.Sprint(half + 1)})...)
	s.must("train", "--resume", "--out", turns, "--steps", fmt.Sprint(steps))
	s.sameBits(turns+last, alone+last)
	s.sameLosses(turns, alone)
}

// sameBits wants the tensors of two checkpoints equal, whatever ranks have left them.
func (s *site) sameBits(a, b string) {
	s.t.Helper()
	got, want := s.content(a), s.content(b)
	for name := range want {
		if name != "state.json" && !bytes.Equal(got[name], want[name]) {
			s.t.Errorf("%s of %s is not that of %s", name, a, b)
		}
	}
}

// sameLosses wants equal numbers at every step.
func (s *site) sameLosses(a, b string) {
	s.t.Helper()
	if x, y := s.losses(a), s.losses(b); len(y) == 0 || !reflect.DeepEqual(x, y) {
		s.t.Errorf("the losses of %s are %v, those of %s %v", a, x, b, y)
	}
}
