package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/settings"
)

// A run of a method with more networks may begin with those that a run of another has. Its
// settings are its own, and say which networks these are, so its digest does.
func TestFromNetworks(t *testing.T) {
	dir := t.TempDir()
	vae, both, one, none := filepath.Join(dir, "vae"), filepath.Join(dir, "both"), filepath.Join(dir, "one"), filepath.Join(dir, "none")
	if _, _, err := small(t, vae, "--algo", "vae", "--steps", "3"); err != nil {
		t.Fatal(err)
	}
	mine := []string{"--algo", "bidvl", "--steps", "1", "--lr", "1e-12", "--lr-energy", "1e-12"} // so that what it begins with is to be seen
	stdout, _, err := small(t, both, append(mine, "--from", vae, "--from-networks", "generator, inference")...)
	if want := "--from: the weights of generator and inference are those of " + vae + " after 3 steps, and those of energy of the seed"; err != nil || !strings.Contains(stdout, want) {
		t.Fatalf("%v: got %q, expected %q", err, stdout, want)
	}
	_, _, err = small(t, one, append(mine, "--from", vae, "--from-networks", "generator")...)
	_, _, failed := small(t, none, mine...)
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for run, of := range map[string]map[string]string{
		both: {"inference": vae, "generator": vae, "energy": none},
		one:  {"inference": none, "generator": vae, "energy": none},
	} {
		for network, from := range of {
			if !near(t, run, from, network) {
				t.Errorf("%s of %s is not that of %s", network, run, from)
			}
		}
		c, err := rundir.ReadConfig(run)
		if err != nil {
			t.Fatal(err)
		}
		s, err := settings.Parse(c.Settings)
		if err != nil || s.From == "" || len(s.FromNetworks) != len(of)-map[string]int{both: 1, one: 2}[run] || seen[c.Digest] {
			t.Errorf("%s: settings %+v, digest %s, %v", run, s, c.Digest, err)
		}
		seen[c.Digest] = true
	}
	if near(t, both, none, "generator") {
		t.Error("the generator of the seed is that of the VAE: the test sees nothing")
	}
	if err := os.RemoveAll(vae); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--out "+both+" --steps 2"); err != nil {
		t.Error(err)
	}
	if err := resume(t, "--out "+both+" --steps 3 --from-networks generator"); err == nil || !strings.Contains(err.Error(), "has --from-networks generator, inference, not --from-networks generator: ") {
		t.Errorf("got %v, expected that the run began with other networks", err)
	}
}

// near says whether the weights of a network of two runs' newest checkpoints are alike.
func near(t *testing.T, a, b, network string) bool {
	t.Helper()
	values := func(run string) map[string][]float32 {
		newest, err := ckpt.NewestStep(rundir.Layout(run).Ckpt())
		if err != nil {
			t.Fatal(err)
		}
		_, groups, err := ckpt.Read(fromCheckpoint(run, newest))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]float32{}
		for _, n := range groups[ckpt.Weights] {
			if nn.NetworkOf(n.Name) == network {
				all[n.Name] = n.Tensor.F32()
			}
		}
		return all
	}
	x, y := values(a), values(b)
	if len(x) == 0 || len(x) != len(y) {
		t.Fatalf("%d weights of %s in %s, %d in %s", len(x), network, a, len(y), b)
	}
	for name, v := range x {
		for i := range v {
			if d := v[i] - y[name][i]; !(d < 1e-6 && d > -1e-6) {
				return false
			}
		}
	}
	return true
}

// Before it has a checkpoint of its own a run begins again with the same networks.
func TestFromNetworksBeforeTheFirstCheckpoint(t *testing.T) {
	dir := t.TempDir()
	vae, again, whole := filepath.Join(dir, "vae"), filepath.Join(dir, "again"), filepath.Join(dir, "whole")
	if _, _, err := small(t, vae, "--algo", "vae"); err != nil {
		t.Fatal(err)
	}
	more := []string{"--algo", "bidvl", "--from", vae, "--from-networks", "generator"}
	begun(t, again, more...)
	if err := run(t.Context(), []string{"--resume", "--out", again}, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, _, err := small(t, whole, more...); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, run := range []string{again, whole} {
		b, err := os.ReadFile(filepath.Join(run, "ckpt", ckpt.Name(2), "weights.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, string(b))
	}
	if files[0] != files[1] {
		t.Error("a run that begins again has other weights than one that was not ended")
	}
}

// A network of the other run that has more than the new one's of that name is another network.
func TestFromLargerNetwork(t *testing.T) {
	o := options{from: "runs/a"}
	of := func(names ...string) (out []nn.Variable) {
		for _, n := range names {
			out = append(out, nn.Variable{Name: n})
		}
		return out
	}
	mine := of("generator.1.weight", "energy.1.weight")
	if err := o.checkNoMore(mine, of("generator.1.weight")); err != nil {
		t.Error(err)
	}
	want := "the model of runs/a has generator.2.weight, which the new one has not: give a run whose network generator is the same"
	if err := o.checkNoMore(mine, of("generator.1.weight", "generator.2.weight")); err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}
