package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
)

// A run may begin with the weights of another that had other losses, rates, data and batch,
// and its digest says so; the checkpoint is noted, and nothing but a new checkpoint of the
// run is needed to go on with it.
func TestFrom(t *testing.T) {
	dir := t.TempDir()
	first, second, same, none := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "same"), filepath.Join(dir, "none")
	if _, _, err := small(t, first, "--steps", "3", "--ckpt-every", "1"); err != nil {
		t.Fatal(err)
	}
	other := []string{"--seed", "2", "--lr", "0.001", "--data", "synth:train=24", "--batch", "8", "--vae-weight", "1"}
	stdout, _, err := small(t, second, append(other, "--from", first)...)
	if want := "--from: the weights are those of " + first + " after 3 steps"; err != nil || !strings.Contains(stdout, want) {
		t.Fatalf("%v: got %q, expected %q", err, stdout, want)
	}
	if _, _, err := small(t, same, append(other, "--from", first, "--from-step", "3")...); err != nil {
		t.Fatal(err)
	}
	if _, _, err := small(t, none, other...); err != nil {
		t.Fatal(err)
	}
	read := func(run string) (digest, flag, weights string) {
		c, err := rundir.ReadConfig(run)
		b, failed := os.ReadFile(filepath.Join(run, "ckpt", ckpt.Name(2), "weights.safetensors"))
		if err := errors.Join(err, failed); err != nil {
			t.Fatal(err)
		}
		return c.Digest, c.Flags["from-step"], string(b)
	}
	digest, flag, weights := read(second)
	if d, f, w := read(same); d != digest || f != flag || w != weights || flag != "3" {
		t.Errorf("the newest checkpoint and step 3 are one, but give %s, %s and %s, %s, equal weights: %v", digest, flag, d, f, w == weights)
	}
	if d, f, w := read(none); d == digest || f != "-1" || w == weights {
		t.Errorf("without --from the digest is %s (with it %s), --from-step %s, equal weights: %v", d, digest, f, w == weights)
	}
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--out "+second+" --steps 3"); err != nil {
		t.Error(err)
	}
}

// Of a run whose newest checkpoint is torn another begins with the one before it, and a
// warning says why.
func TestFromSkips(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	if _, _, err := small(t, first, "--ckpt-every", "1"); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(first, "ckpt", ckpt.Name(2), "state.json")
	if err := os.Truncate(state, 100); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := small(t, filepath.Join(dir, "second"), "--from", first)
	if want := "--from: the weights are those of " + first + " after 1 step\n"; err != nil || !strings.Contains(stdout, want) {
		t.Errorf("%v: got %q, expected %q", err, stdout, want)
	}
	if want := "checkpoint skipped: " + state + ": "; !strings.Contains(stderr, want) {
		t.Errorf("stderr is %q, expected %q", stderr, want)
	}
}

// A run that could not read the weights it was to begin with is not in the next one's way.
func TestFromDamaged(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if _, _, err := small(t, first); err != nil {
		t.Fatal(err)
	}
	weights := filepath.Join(first, "ckpt", ckpt.Name(2), "weights.safetensors")
	whole, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	torn := slices.Clone(whole)
	torn[len(torn)-1] ^= 1
	if err := os.WriteFile(weights, torn, 0o644); err != nil {
		t.Fatal(err)
	}
	const damaged = "the checkpoint is damaged"
	if _, _, err := small(t, second, "--from", first); err == nil || !strings.Contains(err.Error(), damaged) {
		t.Fatalf("%v, want that %s", err, damaged)
	}
	if c, err := rundir.ReadConfig(second); err != nil || !strings.Contains(c.Failed, damaged) {
		t.Errorf("noted is %q, %v", c.Failed, err)
	}
	if err := os.WriteFile(weights, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := small(t, second, "--from", first, "--lr", "0.001"); err != nil {
		t.Error(err)
	}
	if _, _, err := small(t, second); err == nil || !strings.Contains(err.Error(), "holds another run") {
		t.Errorf("%v, want that it holds another run", err)
	}
}

// Before it has a checkpoint of its own a run begins again with the same weights, and says so
// if they are gone or are others.
func TestFromBeforeTheFirstCheckpoint(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if _, _, err := small(t, first, "--ckpt-every", "1"); err != nil {
		t.Fatal(err)
	}
	begun(t, second, "--from", first)
	newer := filepath.Join(first, "ckpt", ckpt.Name(5))
	if err := os.Mkdir(newer, 0o777); err != nil { // is not looked at: step 2 it was
		t.Fatal(err)
	}
	noted, away := filepath.Join(first, "ckpt", ckpt.Name(2)), filepath.Join(dir, "away")
	if err := os.Rename(noted, away); err != nil {
		t.Fatal(err)
	}
	goOn := func() error {
		return run(t.Context(), []string{"--resume", "--out", second}, nil, io.Discard, io.Discard)
	}
	if err := goOn(); err == nil || !strings.Contains(err.Error(), noted) {
		t.Errorf("got %v, expected that %s is not there", err, noted)
	}
	if err := os.CopyFS(noted, os.DirFS(filepath.Join(first, "ckpt", ckpt.Name(1)))); err != nil {
		t.Fatal(err)
	}
	if err := goOn(); err == nil || !strings.Contains(err.Error(), "is not the checkpoint that this run began with") {
		t.Errorf("got %v, expected that it is another checkpoint", err)
	}
	if err := errors.Join(os.RemoveAll(noted), os.Rename(away, noted), goOn()); err != nil {
		t.Error(err)
	}
}

// From another folder a run goes on with the weights that it began with, though their path is
// relative, and so it does the next time from a third one.
func TestFromIsSeenFromTheFolderOfTheRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if _, _, err := small(t, "first"); err != nil {
		t.Fatal(err)
	}
	begun(t, "second", "--from", "first")
	second := filepath.Join(dir, "second")
	goesOn := func() (*options, *pflag.FlagSet) {
		t.Helper()
		t.Chdir(t.TempDir())
		saved, err := savedRun(second)
		if err != nil {
			t.Fatal(err)
		}
		o, fs, err := parse(saved, []string{"--resume", "--out", second}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(dir, "first"); o.fromPath() != want {
			t.Errorf("it begins with the run at %q, want %q", o.fromPath(), want)
		}
		return o, fs
	}
	if _, fs := goesOn(); cliflag.Values(fs)["from"] != "first" {
		t.Errorf("--from is %q: ranks in other folders have first", cliflag.Values(fs)["from"])
	}
	if err := run(t.Context(), []string{"--resume", "--out", second}, nil, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
	goesOn()
	for _, from := range []string{filepath.Join(dir, "first"), "first"} {
		t.Chdir(dir)
		if err := run(t.Context(), []string{"--resume", "--out", second, "--from", from, "--steps", "3"}, nil, io.Discard, io.Discard); err != nil {
			t.Errorf("with the --from that it began with, %s: %v", from, err)
		}
	}
	for _, from := range []string{"", "second"} {
		if err := resume(t, "--steps 4 --out "+second+" --from="+from); err == nil || !strings.Contains(err.Error(), "has --from first, not ") {
			t.Errorf("%v, want that --from is not %q", err, from)
		}
	}
}

// Where nothing else is said a new run has the settings of the other, but for where that
// began.
func TestFromTakesTheSettings(t *testing.T) {
	dir := t.TempDir()
	first, second, third := filepath.Join(dir, "first"), filepath.Join(dir, "second"), filepath.Join(dir, "third")
	if _, _, err := small(t, first, "--preset", "bidvl-cifar10", "--data", "synth:size=32,train=32", "--profile", "1"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--from", first, "--lr", "0.001", "--out", second}, {"--from", second, "--steps", "1", "--out", third}} {
		if err := run(t.Context(), args, nil, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]map[string]string{
		first:  {"from": "", "lr": "0.0003", "steps": "2", "profile": "1"},
		second: {"from": first, "from-step": "2", "lr": "0.001", "steps": "2", "profile": "-1", "width": "4"},
		third:  {"from": second, "from-step": "2", "lr": "0.001", "steps": "1", "width": "4"},
	}
	for path, flags := range want {
		c, err := rundir.ReadConfig(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range flags {
			if c.Flags[name] != value {
				t.Errorf("%s has --%s %q, expected %q", path, name, c.Flags[name], value)
			}
		}
	}
	err := resume(t, "--out "+second+" --from "+first+" --from-step -1") // as a launcher does that starts its ranks again
	if err != nil {
		t.Error(err)
	}
	if err := resume(t, "--out "+second+" --from-step 1"); err == nil || !strings.Contains(err.Error(), "has --from-step 2, not --from-step 1") {
		t.Errorf("got %v, expected that the run began with step 2", err)
	}
}

// State of layers that another batch has no use for, as persistent chains, begins anew; but of
// other data a run cannot be.
func TestFromAnotherBatch(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	args := strings.Fields("--algo cd --persistent --hidden 4 --data gauss:train=32 --steps 2 --batch 4 --threads 1 --out")
	for _, more := range [][]string{{first}, {second, "--batch", "8", "--from", first}} {
		if err := run(t.Context(), append(slices.Clone(args), more...), nil, io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	args = append(args, filepath.Join(dir, "third"), "--data", "gauss:dim=3,train=32", "--from", first)
	if err := run(t.Context(), args, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--from: gauss:dim=3,train=32 holds points of 3 values, and the model of "+first+" takes points of 2 values") {
		t.Errorf("got %v, expected that the model takes points of 2 values", err)
	}
}

// What cannot be begun with is said before anything is written.
func TestFromMistakes(t *testing.T) {
	dir := t.TempDir()
	first, bare := filepath.Join(dir, "first"), filepath.Join(dir, "bare")
	if _, _, err := small(t, first, "--algo", "vae"); err != nil {
		t.Fatal(err)
	}
	begun(t, bare)
	out := filepath.Join(dir, "out")
	for args, want := range map[string]string{
		"--from-step 2":                             "--from-step says which checkpoint of --from a run begins with: give --from",
		"--from " + dir:                             "is not a run",
		"--from " + bare:                            bare + " holds no checkpoint yet",
		"--from " + first + " --from-step 7":        first + " holds no checkpoint of step 7: it has that of step 2",
		"--from " + first + " --from-step -2":       "--from-step",
		"--from " + first + " --algo vae --width 8": "and f32[",
		"--algo bidvl --from " + first:              "which the new one needs: give a run of the same networks, or say with --from-networks which of its networks (generator, inference)",
		"--from-networks generator":                 "--from-networks says which networks of --from a run begins with: give --from",
		"--algo bidvl --from-networks inference,decoder --from " + first:    "--from: the model of " + first + ` has no network "decoder", which --from-networks names: it has generator and inference`,
		"--algo bidvl --from-networks inference, --from " + first:           `has no network "", which --from-networks names: it has `,
		"--algo bidvl --width 8 --from-networks generator --from " + first:  "and f32[",
		"--from-networks generator,inference --from " + first:               "--from-networks names all networks of the new model, generator and inference: leave it out, or say with --algo",
		"--algo sngan --batch 10 --from-networks inference --from " + first: `the new model has no network "inference", which --from-networks names: it has discriminator and generator`,
		"--algo sngan --batch 10 --from-networks generator --from " + first: "give a run whose network generator is the same",
	} {
		_, _, err := small(t, out, strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, expected %q", args, err, want)
		}
		if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something is left in --out: %v", args, err)
		}
	}
	if err := run(t.Context(), []string{"--from", first, "--out", out, "--widht", "8"}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "--widht") {
		t.Errorf("got %v, expected that there is no flag --widht", err)
	}
	var help strings.Builder
	if err := run(t.Context(), []string{"--from", dir, "--help"}, nil, &help, io.Discard); !errors.Is(err, cliflag.ErrHelp) || !strings.Contains(help.String(), "--from string") {
		t.Errorf("--help beside a run that is none: %v, %q", err, help.String())
	}
	verified := strings.Fields("--preset bism-frey --data synth --verify-hypergradient --from " + first)
	if err := run(t.Context(), verified, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "takes the weights of the seed: leave --from out") {
		t.Errorf("got %v, expected that --verify-hypergradient has no use for --from", err)
	}
}
