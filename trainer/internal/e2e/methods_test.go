package e2e

import (
	"bytes"
	"fmt"
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
	for _, preset := range newSite(t).boards() {
		t.Run(preset, func(t *testing.T) {
			batch := "100"
			if strings.Contains(preset, "ksd") { // of pairs
				batch = "104"
			}
			newSite(t).onRanks(5, 8, "--preset", preset, "--batch", batch, "--data", "checkerboard:train=500")
		})
	}
}

// So do those that are trained on pictures alone.
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

// onRanks trains so many steps with these flags on one rank, two and four, and on
// two with a stop before the end.
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
	var want map[string][]byte
	for _, n := range []int{0, 2, 4} {
		got := s.content(train(n, steps, fmt.Sprint("bits", n), "--deterministic") + last)
		delete(got, "state.json")
		if want == nil {
			want = got
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				s.t.Errorf("%d ranks: %s is not that of one rank", n, name)
			}
		}
	}
}
