package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/experiment/cell"
)

// load reads a cell that must be there.
func (s *site) load(experiment, row string, seed uint64) cell.Status {
	s.t.Helper()
	st, err := cell.Cell{Root: s.out, Experiment: experiment, Row: row, Seed: seed}.Load()
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// TestRun does an experiment, compares a cell with the programs run by hand, and
// does it again, which does nothing.
func TestRun(t *testing.T) {
	s := newSite(t)
	out := s.must("run", "tiny", "--jobs", "2")
	for _, want := range []string{"tiny: 4 cells to do, 0 finished before", "wild seed 1: diverged: training diverged", "all 4 cells of tiny are finished"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
	m := s.load("tiny", "plain", 2).Measured
	if m == nil || m.Broken != nil || m.CPU <= 0 || m.Train <= 0 || m.Train >= m.CPU || m.Machine == "" || m.Commit == "" || len(m.Command) != 3 {
		t.Fatalf("measured %+v", m)
	}
	t.Run("losses are those of train alone", func(t *testing.T) {
		s.t = t
		args := append(slices.Clone(m.Settings), "--data=synth:train=64,val=16,test=24", "--samples=0", "--threads=1", "--out="+filepath.Join(s.out, "alone"))
		if text, err := exec.Command(filepath.Join(bin, "train"), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if a, b := s.losses("alone"), s.losses("tiny", "plain", "seed-2"); len(a) != 6 || !reflect.DeepEqual(a, b) {
			t.Errorf("losses %v, in the cell %v", a, b)
		}
		if got, want := m.Values["upper-first"], s.losses("alone")[0]["upper"]; got != want {
			t.Errorf("upper-first %v, want %v", got, want)
		}
	})
	t.Run("numbers are those of evaluate", func(t *testing.T) {
		var r struct {
			RMSE float64 `json:"rmse"`
		}
		text, err := exec.Command(filepath.Join(bin, "evaluate"), "--run", filepath.Join(s.out, "alone"), "--json", "--limit", "16", "--batch", "8", "--threads", "1").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &r); err != nil || r.RMSE == 0 || m.Values["rmse"] != r.RMSE {
			t.Errorf("rmse %v, of evaluate %v (%v)", m.Values["rmse"], r.RMSE, err)
		}
		if c := m.Curves["rmse"]; len(c) != 2 || c[0].X != 3 || c[1].X != 6 || c[0].Y == c[1].Y || c[1].Y != r.RMSE {
			t.Errorf("the curve is %v, want two points that end with %v", c, r.RMSE)
		}
	})
	s.t = t
	before := s.content("tiny")
	if out := s.must("run", "tiny"); !strings.HasPrefix(out, "all 4 cells of tiny are finished") {
		t.Errorf("the second time: %s", out)
	}
	if after := s.content("tiny"); !reflect.DeepEqual(before, after) {
		t.Error("the second time changed files")
	}
	if out := s.must("list"); !strings.Contains(out, "tiny        2     2      4 of 4    pictures\n") {
		t.Errorf("list shows\n%s", out)
	}
	s.checkList()
	s.checkReport()
}

// checkList lists all experiments, in a table alone, and some with what they are to show.
func (s *site) checkList() {
	s.t.Helper()
	const about = "\ntiny: All parts of an experiment, small.\n"
	all, some := s.must("list"), s.must("list", "tiny", "long")
	if lines := len(s.app.catalogue) + 3; strings.Count(all, "\n") != lines || strings.Contains(all, about) || !strings.Contains(all, "\nexperiment list NAME says what one is to show\n") {
		s.t.Errorf("want %d lines of all, got\n%s", lines, all)
	}
	if strings.Count(some, "\n") != 7 || !strings.Contains(some, about) || strings.Contains(some, "broken") {
		s.t.Errorf("list of two shows\n%s", some)
	}
	s.fails([]string{"list", "tinier"}, `unknown experiment "tinier": want one of tiny, long,`)
}

// checkReport reports the experiment tiny.
func (s *site) checkReport() {
	t := s.t
	out := s.must("report")
	const others = "experiments are not begun: experiment list shows them"
	if !strings.Contains(out, "tiny: 4 of 4 cells finished; of 0 claims") || strings.Contains(out, "long: 0 of") || !strings.Contains(out, fmt.Sprint("\n", len(s.app.catalogue)-1, " ", others, "\n")) {
		t.Errorf("report prints\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "all.md")
	out = s.must("report", "--all", "--to", file)
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\n| long | 0 of 1 |") || strings.Contains(out+string(text), others) || !strings.Contains(out, "\nlong: 0 of 1 cells finished") {
		t.Errorf("report --all prints\n%s, %v", out, err)
	}
	text, err := os.ReadFile(filepath.Join(s.out, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"## tiny\n", fmt.Sprint("\n", len(s.app.catalogue)-1, " ", others, ".\n"), "| wild | `--lr=1e30` | 2 | diverged |", "![RMSE](RESULTS/tiny-rmse.png)", "![Samples: plain](RESULTS/tiny-plain-samples.png)", "diverged (training diverged", "\ntrain --batch=8 "} {
		if !strings.Contains(string(text), want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	for _, name := range []string{"tiny-rmse.png", "tiny-plain-samples.png"} {
		if b, err := os.ReadFile(filepath.Join(s.out, "RESULTS", name)); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
	}
	s.checkPack(string(text))
}

// checkPack keeps what the report of tiny is made of, lays it out elsewhere, and reports
// the same.
func (s *site) checkPack(report string) {
	t := s.t
	kept := filepath.Join(t.TempDir(), "kept")
	elsewhere := t.TempDir()
	var first []byte
	for range 2 {
		if err := os.RemoveAll(kept); err != nil {
			t.Fatal(err)
		}
		s.must("pack", "tiny", "--to", kept)
		b, err := os.ReadFile(filepath.Join(kept, "tiny.tgz"))
		if err != nil || first != nil && !bytes.Equal(b, first) {
			t.Fatalf("%v, or packed twice it has other bytes", err)
		}
		first = b
	}
	if text, err := exec.Command("tar", "-C", elsewhere, "-xzf", filepath.Join(kept, "tiny.tgz")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if found, err := filepath.Glob(filepath.Join(elsewhere, "tiny", "*", "*", "*")); err != nil || len(found) != 9 {
		t.Errorf("%v, %v: want two files of four cells and a picture", found, err)
	}
	other := *s
	other.out = elsewhere
	other.must("report")
	text, err := os.ReadFile(filepath.Join(elsewhere, "RESULTS.md"))
	if err != nil || string(text) != report {
		t.Errorf("%v, the report of what was kept is\n%s", err, text)
	}
	for _, name := range []string{"tiny-rmse.png", "tiny-plain-samples.png"} {
		a, err := os.ReadFile(filepath.Join(s.out, "RESULTS", name))
		b, err2 := os.ReadFile(filepath.Join(elsewhere, "RESULTS", name))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %v, or it is another", name, err)
		}
	}
}

// content is every file of an experiment.
func (s *site) content(experiment string) map[string]string {
	s.t.Helper()
	files := map[string]string{}
	root := filepath.Join(s.out, experiment)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// TestChosen: the checkpoint with the least loss on the validation split is
// measured, and the last one beside it.
func TestChosen(t *testing.T) {
	s := newSite(t)
	s.must("run", "chosen")
	m := s.load("chosen", "plain", 1).Measured
	if m == nil || m.Broken != nil {
		t.Fatalf("measured %+v", m)
	}
	evaluate := func(step int, measure, split string) float64 {
		args := []string{"--run", filepath.Join(s.out, "chosen", "plain", "seed-1"), "--json", "--threads", "1", "--measures", measure, "--split", split, "--step", fmt.Sprint(step)}
		text, err := exec.Command(filepath.Join(bin, "evaluate"), args...).Output()
		fields := map[string]any{}
		if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
			t.Fatal(err)
		}
		v, ok := fields[measure].(float64)
		if !ok {
			t.Fatalf("%s of step %d: %s", measure, step, text)
		}
		return v
	}
	best, at := math.Inf(1), 0
	for _, step := range []int{3, 6, 9, 12} {
		if loss := evaluate(step, "loss", "val"); loss < best {
			best, at = loss, step
		}
	}
	if at == 12 {
		t.Fatal("the last checkpoint is the best: nothing is seen here")
	}
	want := map[string]float64{"step": float64(at), "fisher": evaluate(at, "fisher", "test"), "fisher-last": evaluate(12, "fisher", "test")}
	if !reflect.DeepEqual(m.Values, want) || want["fisher"] == want["fisher-last"] {
		t.Errorf("measured %v, want %v", m.Values, want)
	}
	s.wantReport("chosen", "Of 4 checkpoints of a run that with the least validation loss was measured (`evaluate --split=val`).")
}

// TestMadeData makes a data set first, once.
func TestMadeData(t *testing.T) {
	s := newSite(t)
	s.fails([]string{"run", "made"}, "the data set own is not in ", "give --source, a folder of pictures, or --data")
	s.fails([]string{"run", "made", "--source", filepath.Join(s.out, "nowhere")}, "--source: ", "nowhere: no such file or directory: want a folder of pictures")
	if left, err := os.ReadDir(s.out); err == nil && len(left) > 0 {
		t.Errorf("without data it has made %v", left)
	}
	s.fails([]string{"run", "made", "--source", t.TempDir()}, "mkshards folder --size 32 --test-percent 50: exit 1: ")
	if _, err := os.Stat(filepath.Join(s.out, "data")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder of data is left: %v", err)
	}
	synth := filepath.Join(s.out, "synth")
	if text, err := exec.Command(filepath.Join(bin, "train"), "--width=4", "--latent=4", "--batch=8", "--steps=8", "--sample-every=1", "--samples=4", "--data=synth:train=64", "--out="+synth).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out := s.must("run", "made", "--source", filepath.Join(synth, "samples"), "--steps", "1")
	if !strings.Contains(out, "data set own made of ") {
		t.Errorf("got\n%s", out)
	}
	if m := s.load("made", "plain", 1).Measured; m == nil || m.Data["train"] == "" || m.Data["test"] == "" {
		t.Errorf("measured %+v, want it with the digests of the data that were made", m)
	}
	data, away := filepath.Join(s.out, "data"), filepath.Join(t.TempDir(), "data")
	if err := os.Rename(data, away); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"run", "made", "--again"}, "the data set own is not in ")
	if m := s.load("made", "plain", 1).Measured; m == nil {
		t.Error("--again without data has removed a finished cell")
	}
	if err := os.Rename(away, data); err != nil {
		t.Fatal(err)
	}
	if out := s.must("run", "made", "--again"); strings.Contains(out, "made of") {
		t.Errorf("the data set was made again:\n%s", out)
	}
	pictures, err := filepath.Glob(filepath.Join(synth, "samples", "*.png"))
	if err != nil || len(pictures) == 0 {
		t.Fatalf("%v, %d pictures", err, len(pictures))
	}
	if err := errors.Join(os.RemoveAll(data), os.Remove(pictures[0])); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"run", "made", "--seeds", "1,2", "--source", filepath.Join(synth, "samples")}, "1 cell of made", "(plain seed 1 on other data: te")
	s.fails([]string{"run", "tiny", "--source", "x"}, "tiny is trained on pictures, which is built in: leave --source out")
}

// TestWrongData: data that cannot be read are told of before the first cell.
func TestWrongData(t *testing.T) {
	s := newSite(t)
	nowhere := filepath.Join(s.out, "nowhere")
	for _, args := range [][]string{
		{"run", "tiny", "--data", nowhere},
		{"run", "told", "--beside", "svhn=" + nowhere},
		{"run", "ranks", "--set", "points=" + nowhere},
	} {
		given := strings.Join(args[2:], " ")
		if out := s.fails(args, given+": "); strings.Contains(out, "to do") {
			t.Errorf("experiment %q began:\n%s", args, out)
		}
	}
	if left, err := os.ReadDir(s.out); err == nil && len(left) > 0 {
		t.Errorf("it has made %v", left)
	}
}

// TestComputed does an experiment that trains nothing.
func TestComputed(t *testing.T) {
	s := newSite(t)
	s.must("run", "sums", "--jobs", "2")
	if m := s.load("sums", "three", 2).Measured; m == nil || m.Values["sum"] != 12 || len(m.Curves["sums"]) != 3 || m.CPU <= 0 {
		t.Errorf("measured %+v", m)
	}
	s.must("report", "sums")
	text, err := os.ReadFile(filepath.Join(s.out, "RESULTS.md"))
	for _, want := range []string{"| three | `--n=3` | 2 | 9 ± 4.243 |", "- none seed 1: no n, no sum", "![Sums](RESULTS/sums-sum.png)"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v, want %q in\n%s", err, want, text)
		}
	}
}

// TestBetween: samples between pictures of the experiment's data are drawn, and shown.
func TestBetween(t *testing.T) {
	s := newSite(t)
	s.must("run", "between")
	s.must("report", "between")
	for _, file := range []string{"between/drawn/seed-1/between.png", "RESULTS/between-drawn-between.png"} {
		if b, err := os.ReadFile(filepath.Join(s.out, file)); err != nil || !bytes.HasPrefix(b, []byte("\x89PNG")) {
			t.Errorf("%s: %v, %d bytes", file, err, len(b))
		}
	}
	if _, err := os.Stat(filepath.Join(s.out, "between/drawn/seed-1/samples.png")); err == nil {
		t.Error("samples were drawn that nobody asked for")
	}
}

// TestTold: energies are told from those of other data sets, at the end and at best.
func TestTold(t *testing.T) {
	s := newSite(t)
	s.fails([]string{"run", "told"}, "told compares with the data set svhn: give --beside svhn=DIR, what mkshards svhn made of digits")
	s.fails([]string{"run", "told", "--beside", "noise=x"}, "--beside noise=x: want NAME=DIR, and told compares with these data sets: [svhn celeba]")
	s.must("run", "told", "--beside", "svhn=synth:seed=5,test=16")
	m := s.load("told", "plain", 1).Measured
	if m == nil || m.Broken != nil {
		t.Fatalf("measured %+v", m)
	}
	curve := m.Curves["auroc-svhn"]
	if len(curve) != 2 || m.Values["auroc-svhn"] != curve[1].Y || m.Values["auroc-svhn-best"] != max(curve[0].Y, curve[1].Y) {
		t.Errorf("got %v and the curve %v", m.Values, curve)
	}
	if v, ok := m.Values["auroc-celeba"]; !ok || v < 0 || v > 1 || v == m.Values["auroc-svhn"] {
		t.Errorf("got %v", m.Values)
	}
}

// TestText: from a file of sentences to perplexities and samples in the report.
func TestText(t *testing.T) {
	s := newSite(t)
	file := filepath.Join(t.TempDir(), "prose.txt")
	if err := os.WriteFile(file, []byte(strings.Repeat("one two three\ntwo three one two\n", 20)), 0o644); err != nil {
		t.Fatal(err)
	}
	s.must("run", "text", "--source", file)
	prior, lm := s.load("text", "prior", 1).Measured.Values, s.load("text", "lm", 1).Measured.Values
	if prior["collapsed"] != 1 || !(prior["nll-given"] > 1) || !(lm["nll"] > 1) || len(prior) != 6 || len(lm) != 4 {
		t.Errorf("measured %v and %v", prior, lm)
	}
	for _, v := range []map[string]float64{prior, lm} {
		if !(v["forward"] > v["forward-floor"] && v["forward-floor"] > 1 && v["reverse"] > 1) {
			t.Errorf("measured %v", v)
		}
	}
	s.must("report", "text")
	text, err := os.ReadFile(filepath.Join(s.out, "RESULTS.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(text), "\nSamples: prior:\n\n```\n")
	shown, _, ok := strings.Cut(shown, "```\n")
	if !ok || strings.Count(shown, "\n") != 10 {
		t.Errorf("the report shows %q as samples:\n%s", shown, text)
	}
	if err := os.Remove(filepath.Join(s.out, "text", "lm", "seed-1", "measured.json")); err != nil { // as where it was stopped just before
		t.Fatal(err)
	}
	s.must("run", "text", "--source", file)
	if again := s.load("text", "lm", 1).Measured; again == nil || again.Broken != nil {
		t.Errorf("measured again: %+v", again)
	}
}

// TestAlone: a child is no rank of the job that this process may be part of.
func TestAlone(t *testing.T) {
	got := alone([]string{"PATH=/bin", "RANK=1", "WORLD_SIZE=2", "SLURM_NTASKS=4", "EBTRAIN_EPOCH=0", "EBTRAIN_LIBDNNL=x", "OMP_NUM_THREADS=3"})
	if want := []string{"PATH=/bin", "EBTRAIN_LIBDNNL=x", "EBTRAIN_PROGRESS=plain"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestMachine: the machine of a cell is told with its GPUs.
func TestMachine(t *testing.T) {
	cores := fmt.Sprintf(", %d cores", runtime.NumCPU())
	if m := machine(nil); !strings.HasSuffix(m, cores) {
		t.Errorf("without a GPU it is %q", m)
	}
	if m := machine([]string{"NVIDIA H200", "NVIDIA H200"}); !strings.HasSuffix(m, cores+", NVIDIA H200, NVIDIA H200") {
		t.Errorf("with two it is %q", m)
	}
}
