package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/data/importer"
	"ebtrain/data/synth"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/loop"
	"ebtrain/trainer/run/rundir"
)

// resume goes on with a run by args alone.
func resume(t *testing.T, args string) error {
	t.Helper()
	var o, e strings.Builder
	err := run(t.Context(), append([]string{"--resume"}, strings.Fields(args)...), nil, &o, &e)
	if e.Len() > 0 {
		t.Errorf("%s: stderr %q", args, e.String())
	}
	return err
}

// --resume and --out are enough; what is beside them and may change lasts.
func TestResumeAlone(t *testing.T) {
	dir := t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	if _, _, err := small(t, whole, "--steps", "5", "--lr", "0.01"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := small(t, parts, "--steps", "2", "--lr", "0.01", "--profile", "1"); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"--steps 4 --log-every 1 --data synth:train=32", "", "--steps 5 --prefetch 0 --samples 0"} {
		if err := resume(t, "--out "+parts+"/ "+args); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
	}
	a, err := os.ReadFile(filepath.Join(whole, "ckpt/step-00000005/weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(parts, "ckpt/step-00000005/weights.safetensors"))
	if err != nil || string(a) != string(b) {
		t.Errorf("the resumed run has other weights (%v)", err)
	}
	c, err := rundir.ReadConfig(parts)
	if err != nil || c.Flags["steps"] != "5" || c.Flags["lr"] != "0.01" || c.Flags["prefetch"] != "0" || len(c.Resumed) != 3 {
		t.Errorf("config.json has %v, %v", c.Flags, err)
	}
}

// begun begins a run with a small model and leaves it before its first checkpoint.
func begun(t *testing.T, out string, more ...string) {
	t.Helper()
	args := append(strings.Fields("--width 4 --latent 3 --batch 4 --steps 2 --samples 2 --threads 1 --data synth:train=32 --out "+out), more...)
	o, fs, err := parse(nil, args, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	src, err := openData(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.openFrom(fs, src.Schema()); err != nil {
		t.Fatal(err)
	}
	r, err := newRecorder(o, runInfo{args: args, flags: cliflag.Values(fs)}, 1, "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	rec := loop.Record{Names: algo.Names(o.model.Model().Report()), StepTime: time.Millisecond}
	rec.Values = make([]float64, len(rec.Names))
	if err := errors.Join(r.Started(0), r.Stepped(rec), r.Close()); err != nil {
		t.Fatal(err)
	}
}

// A run that was ended before its first checkpoint goes on from step 0, and what is given
// then lasts as well.
func TestResumeFromTheBeginning(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	begun(t, out)
	args := []string{"--resume", "--out", out, "--steps", "6", "--ckpt-every", "3"}
	if err := run(t.Context(), args, nil, io.Discard, io.Discard); err != nil { // it warns that there is no checkpoint
		t.Fatal(err)
	}
	if err := resume(t, "--out "+out); err != nil {
		t.Fatal(err)
	}
	c, err := rundir.ReadConfig(out)
	if err != nil || c.Flags["steps"] != "6" || len(c.Resumed) != 2 || c.Resumed[0].Step != 0 || c.Resumed[1].Step != 6 {
		t.Errorf("config.json has %v, %v, %v", c.Flags, c.Resumed, err)
	}
}

// One that has had checkpoints is not begun anew when they are lost, whatever they were
// written for: here the end of the run alone.
func TestResumeOfLostCheckpoints(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out, "--ckpt-every", "0"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(out, "ckpt")); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(rundir.Layout(out).MetricsFile())
	if err != nil {
		t.Fatal(err)
	}
	again := func(want string) {
		t.Helper()
		err := run(t.Context(), []string{"--resume", "--out", out, "--steps", "9"}, nil, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if after, err := os.ReadFile(rundir.Layout(out).MetricsFile()); err != nil || string(after) != string(before) {
			t.Errorf("metrics.jsonl was changed (%v)", err)
		}
	}
	again("has had a checkpoint of step 2, and none is left in ")
	c, err := rundir.ReadConfig(out)
	if err != nil {
		t.Fatal(err)
	}
	c.Saved, c.Resumed = 0, []rundir.Resume{{Step: 1}} // of a run begun when only that was noted
	b, err := json.Marshal(c)
	if err == nil {
		err = os.WriteFile(rundir.Layout(out).ConfigFile(), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	again("has had a checkpoint of step 1, ")
}

// config.json has the number that auto stands for: a run goes on by the command that began
// it, or with the number, and with no other.
func TestResumeLatentWeight(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out, "--latent-weight", "auto", "--latent", "4"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"auto": "", "0.25": "", "0.5": "has --latent-weight 0.25, not --latent-weight 0.5: "} {
		err := resume(t, "--out "+out+" --latent-weight "+text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("--latent-weight %s: %v, want %q", text, err, want)
		}
	}
}

// Grids that were asked for as often as they would come by themselves are not left out
// where each is a chain of transitions.
func TestResumeKeepsGrids(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	args := strings.Fields("--preset sm-board-ssm --data checkerboard --batch 4 --steps 100 --samples 2 --sample-every 100 --out " + out)
	if err := run(t.Context(), args, nil, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--out "+out+" --steps 201"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(out, "samples/step-00000200.png")); err != nil {
		t.Error(err)
	}
}

func TestResumeRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--lr 0.1 --steps 4 --width 8 --flip", "has --lr 0.0003 --width 4 --flip false, not --lr 0.1 --width 8 --flip true: "},
		{"--deterministic", "has --deterministic false, not --deterministic true: "},
		{"--precision bf16", "has --precision f32, not --precision bf16: "},
		{"--preset bidvl-svhn", "has no --preset, not --preset bidvl-svhn: "},
		{"--steps 1", "--steps 1, but the run in " + out + " has done 2 steps: "},
		{"--steps 0", "want --steps of at least 1"},
	} {
		err := resume(t, "--out "+out+" "+c.args)
		if _, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a usage error with %q", c.args, err, c.want)
		}
	}
	if err := run(t.Context(), []string{"--resume=1", "--out", out, "--steps", "1"}, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "has done 2 steps") {
		t.Errorf("--resume=1: %v", err)
	}
	err := resume(t, "--out "+out+"x --steps 7")
	if _, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.Contains(err.Error(), "holds no run to resume") {
		t.Errorf("a run that is not there: %v", err)
	}
	if _, err := os.Stat(out + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was begun: %v", err)
	}
}

// shards writes a small data set.
func shards(t *testing.T, dir string, seed uint64) string {
	t.Helper()
	src, err := synth.Open(synth.Config{Size: 32, Seed: seed, Train: 32}, "train")
	if err != nil {
		t.Fatal(err)
	}
	set := importer.Copy([]importer.Named{{Split: "train", Source: src}})
	if _, err := importer.Run(t.Context(), set, importer.Options{Out: dir}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Data are what they hold, not where they lie.
func TestResumeWhereDataHaveMoved(t *testing.T) {
	dir := t.TempDir()
	out, here, there := filepath.Join(dir, "a"), shards(t, filepath.Join(dir, "here"), 1), filepath.Join(dir, "there")
	other := shards(t, filepath.Join(dir, "other"), 2)
	if _, _, err := small(t, out, "--data", here); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--steps 3 --out "+out+" --data "+here+"/"); err != nil {
		t.Error(err)
	}
	if err := os.Rename(here, there); err != nil {
		t.Fatal(err)
	}
	if err := resume(t, "--steps 4 --out "+out); err == nil || !strings.Contains(err.Error(), "say where they are with --data") {
		t.Errorf("data that are gone: %v", err)
	}
	if err := resume(t, "--steps 4 --out "+out+" --data "+other); err == nil || !strings.Contains(err.Error(), "does not hold the samples that the run in") {
		t.Errorf("other data: %v", err)
	}
	for _, of := range []string{"synth:v1 size=32 seed=0 split=train n=8192", "the run's sha256:"} { // what is made says how
		if err := resume(t, "--steps 4 --out "+out+" --data synth"); err == nil || !strings.Contains(err.Error(), of) {
			t.Errorf("built-in pictures: %v, want %q", err, of)
		}
	}
	for _, args := range []string{"--steps 4 --data " + there, "--steps 5"} { // and the place is kept
		if err := resume(t, "--out "+out+" "+args); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// A run begun when the data's path was a setting goes on under its digest.
func TestResumeOldSettings(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(out, "ckpt")); err != nil {
		t.Fatal(err)
	}
	c, err := rundir.ReadConfig(out)
	if err != nil {
		t.Fatal(err)
	}
	var old map[string]any
	if err := json.Unmarshal(c.Settings, &old); err != nil {
		t.Fatal(err)
	}
	if _, ok := old["data"]; ok {
		t.Error("the data's path is a setting")
	}
	old["data"] = "somewhere/else"
	if c.Settings, err = json.Marshal(old); err != nil {
		t.Fatal(err)
	}
	if c.Digest, err = rundir.Digest(c.Settings); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(out, "config.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	o, _, err := parse(&c, []string{"--resume", "--out", out}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openData(o); err != nil {
		t.Fatal(err)
	}
	if got, err := rundir.Digest(o.settings); err != nil || got != c.Digest {
		t.Errorf("the digest is %s, %v, want the run's %s", got, err, c.Digest)
	}
}

// Flags that were changed by hand in config.json are named with what they take, and those
// that are not there any more as missing there, since nobody typed them.
func TestResumeChangedFlags(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(out, "config.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{`"width": "4"`, `"width": "wide"`, ` has --width "wide", want a whole number: put back what was there`},
		{`"batch": "4"`, `"batc": "4"`, " has no --batch and an unknown --batc among its flags: put back what was there"},
		{`"batch": "4",`, "", " has no --batch among its flags: put back what was there"},
	} {
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), c.old, c.new, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		want := "cannot resume: " + file + c.want
		if err := resume(t, "--steps 3 --out "+out); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := resume(t, "--batch 0 --out "+out); err == nil || strings.Contains(err.Error(), "cannot resume") {
		t.Errorf("a flag that was typed: %v", err)
	}
}

// A rank that is started again goes on with what its own job has begun, and with
// nothing else.
func TestGoOn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	d, err := rundir.Create(out, rundir.Config{Group: "job-12-e0"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	const anothers = " holds another run than this job's: "
	for _, c := range []struct {
		w    env.Worker
		args string
		want string
	}{
		{env.Worker{Group: "job-12-e1", Restart: 1}, "--lr 1 --out " + out, "--resume --lr 1 --out " + out},
		{env.Worker{Group: "job-12-e1", Restart: 1}, "--resume --out " + out, "--resume --out " + out},
		{env.Worker{Group: "job-12-e1", Restart: 1}, "--out " + out + "x", "--resume --out " + out + "x"}, // new, or died before it was made
		{env.Worker{Group: "job-12-e1", Restart: 1}, "--lr 1", "--lr 1"},
		{env.Worker{Group: "job-34-e1", Restart: 1}, "--out " + out, anothers},
		{env.Worker{Group: "job-34-e1", Restart: 1}, "--resume --out " + out, "--resume --out " + out}, // as was asked for
		{env.Worker{Group: "job-12-e0"}, "--out " + out, "--out " + out},
		{env.Worker{}, "--out " + out, "--out " + out},
	} {
		line, err := goOn(c.w, strings.Fields(c.args))
		if got := strings.Join(line, " "); err == nil && got != c.want {
			t.Errorf("epoch %d of %s, %s: got %s", c.w.Restart, c.w.Group, c.args, got)
		}
		if (err != nil) != (c.want == anothers) || err != nil && !strings.HasPrefix(err.Error(), out+anothers) {
			t.Errorf("epoch %d of %s, %s: %v", c.w.Restart, c.w.Group, c.args, err)
		}
	}
	if err := os.Truncate(d.ConfigFile(), 10); err != nil {
		t.Fatal(err)
	}
	for _, typed := range []string{"--out " + out, "--resume --out " + out} {
		if _, err := goOn(env.Worker{Group: "job-12-e1", Restart: 1}, strings.Fields(typed)); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%s where config.json is torn: %v", typed, err)
		}
	}
}
