package e2e

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ebtrain/trainer/run/rundir"
)

// TestUse goes from pictures to shards to a model to what it is worth.
func TestUse(t *testing.T) {
	long(t)
	s := newSite(t)
	s.must("mkshards", "synth", "-size", "32", "-train", "64", "-val", "16", "-test", "24", "-out", "shards")
	s.must("mkshards", "verify", "shards")
	train := func(out, data string) []string {
		return on(2, tiny(out, "--steps", "6", "--data", data, "--ckpt-every", "3"))
	}
	s.must(train("run", "shards")...)
	t.Run("same pictures, same losses", func(t *testing.T) {
		// The order is a function of seed and number, not of where pictures lie.
		s.t = t
		s.must(train("drawn", "synth:train=64,val=16,test=24")...)
		s.close("run", "drawn", 0)
	})
	t.Run("sample", func(t *testing.T) {
		s.t = t
		one := s.must("sample", "--run", "run", "--n", "9", "--scale", "1", "--out", "one.png")
		if want := "9 samples of run after 6 steps: one.png\n"; one.stdout != want || one.stderr != "" {
			t.Errorf("want %q, got %v", want, one)
		}
		const padding = 2 // between pictures and around them
		if got, want := s.picture("one.png"), image.Pt(3*(32+padding)+padding, 3*(32+padding)+padding); got != want {
			t.Errorf("the grid is %v, want %v", got, want)
		}
		if older := s.must("sample", "--run", "run", "--n", "9", "--step", "3", "--out", "older.png"); older.stdout != "9 samples of run after 3 steps: older.png\n" {
			t.Errorf("of the checkpoint before, got %v", older)
		}
		s.must("sample", "-run", "run", "-n", "9", "-scale", "1", "-out", "two.png", "-device", "ref", "-stats", "running")
		s.must("sample", "--run", "run", "--n", "9", "--scale", "1", "--out", "again.png")
		files := map[string]string{}
		for _, name := range []string{"one.png", "two.png", "again.png"} {
			b, err := os.ReadFile(s.path(name))
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(b)
		}
		if files["one.png"] != files["again.png"] || files["one.png"] == files["two.png"] {
			t.Error("the same command must draw the same picture, other statistics another")
		}
	})
	t.Run("curves", func(t *testing.T) {
		s.t = t
		one := s.must("curves", "run")
		last := regexp.QuoteMeta(fmt.Sprintf("%.4g", s.losses("run")[5]["recon"]))
		if want := `recon +run +0-5 .* ` + last + ` +` + last; !regexp.MustCompile(want).MatchString(one.stdout) || !strings.HasSuffix(one.stdout, "\nrun/curves.png\n") || one.stderr != "" {
			t.Errorf("want %q, and the file, got %v", want, one)
		}
		s.picture("run/curves.png")
		s.must("curves", "run", "drawn", "--x", "hours", "--columns", "recon,step_ms", "--out", "both.png")
		s.picture("both.png")
	})
	t.Run("evaluate", func(t *testing.T) { s.t = t; s.checkEvaluation() })
	t.Run("every checkpoint", func(t *testing.T) { s.t = t; s.checkCheckpoints() })
	t.Run("samples beside data", func(t *testing.T) { s.t = t; s.checkComparison() })
	t.Run("folder", func(t *testing.T) {
		s.t = t
		s.must("mkshards", "folder", "--src", "run/samples", "--crop", "none", "--size", "32", "--out", "own")
		s.must(tiny("other", "--data", "own", "--steps", "2", "--batch", "2")...)
		s.must("evaluate", "--run", "other", "--split", "train", "--json")
	})
}

// picture is the size of a PNG.
func (s *site) picture(name string) image.Point {
	s.t.Helper()
	f, err := os.Open(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	m, err := png.Decode(f)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	return m.Bounds().Size()
}

// checkEvaluation evaluates the run "run" on "shards".
func (s *site) checkEvaluation() {
	t := s.t
	var r struct {
		Step, Images int
		RMSE         float64 `json:"rmse"`
		Running      float64 `json:"rmse_running"`
		Mean         float64 `json:"rmse_mean_image"`
		Energies     []struct {
			Of                         string
			N                          int
			Mean, SD, Min, Median, Max float64
		}
		AUROC []struct {
			Against string
			Value   float64
		}
		Picture string
	}
	e := s.must("evaluate", "--run", "run", "--split", "test", "--limit", "20", "--batch", "8", "--ood", "synth:seed=5,test=12", "--ood", "made=synth:seed=6,test=9", "--json")
	if err := json.Unmarshal([]byte(e.stdout), &r); err != nil {
		t.Fatalf("%v: %s", err, e.stdout)
	}
	if r.Step != 6 || r.Images != 20 {
		t.Errorf("want 20 pictures after 6 steps, got %d after %d", r.Images, r.Step)
	}
	for name, v := range map[string]float64{"rmse": r.RMSE, "rmse_running": r.Running, "rmse_mean_image": r.Mean} {
		if !(v > 0.01 && v < 2) { // pixels are in [-1, 1]
			t.Errorf("%s is %v", name, v)
		}
	}
	counts := map[string]int{}
	for _, e := range r.Energies {
		counts[e.Of] = e.N
		if !(e.Min <= e.Median && e.Median <= e.Max && e.Min <= e.Mean && e.Mean <= e.Max && e.SD >= 0) || math.IsInf(e.Max, 0) {
			t.Errorf("energies of %s do not fit together: %+v", e.Of, e)
		}
	}
	if want := map[string]int{"data": 20, "samples": 8, "noise": 20, "ood": 12, "made": 9}; fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("energies of %v, want %v", counts, want)
	}
	for _, a := range r.AUROC {
		if !(a.Value >= 0 && a.Value <= 1) {
			t.Errorf("AUROC against %s is %v", a.Against, a.Value)
		}
	}
	if len(r.AUROC) != 4 {
		t.Errorf("%d AUROCs, want 4", len(r.AUROC))
	}
	s.picture(r.Picture)
	table := s.must("evaluate", "--run", "run", "--limit", "20", "--batch", "8")
	if want := fmt.Sprintf("RMSE of reconstruction  %.4f", r.RMSE); !strings.Contains(table.stdout, want) {
		t.Errorf("the table has not %q:\n%s", want, table.stdout)
	}
}

// checkCheckpoints measures all checkpoints of the run: each has the numbers that it has
// alone, on one rank and on two, and a row in the table.
func (s *site) checkCheckpoints() {
	s.t.Helper()
	measure := []string{"evaluate", "--run", "run", "--limit", "20", "--batch", "8", "--threads", "1", "--measures", "rmse,energy"}
	with := func(more ...string) []string { return append(slices.Clone(measure), more...) }
	want := s.must(with("--json", "--step", "3")...).stdout + s.must(with("--json")...).stdout
	for _, step := range []string{"all", "6,3"} {
		if got := s.must(with("--json", "--step", step)...); got.stdout != want || strings.Count(want, "\n") != 2 {
			s.t.Errorf("--step %s: got %v, want\n%s", step, got, want)
		}
	}
	const line = `[0-9.]+\*? +[0-9.]+\*? +`
	table := s.must(on(2, with("--step", "all"))...)
	if !regexp.MustCompile(`\[0\] run, 20 pictures of shards/test\n\[0\]\n\[0\] step +rmse +rmse_running +energy data .*\n\[0\] 3 +`+line+`.*\n\[0\] 6 +`+line).MatchString(table.stdout) ||
		!strings.Contains(table.stderr, "[0] evaluate: step 6, checkpoint 2 of 2") {
		s.t.Errorf("got %v", table)
	}
	s.checkChart(table, with)
	if e := s.run(with("--step", "3,4")...); e.code != 1 || e.stdout != "" || !strings.Contains(e.stderr, "run holds no checkpoint of step 4: it has those of steps 3, 6") {
		s.t.Errorf("a checkpoint that is not there: got %v", e)
	}
	s.checkDamagedCheckpoint(with)
	s.run("train", "--preset", "cd-board", "--lr", "1e18", "--data", "checkerboard:train=500", "--batch", "100", "--steps", "4", "--ckpt-every", "1", "--samples", "0", "--threads", "1", "--out", "diverged")
	if e := s.run("evaluate", "--run", "diverged", "--step", "all", "--measures", "fisher"); e.code != 1 || e.stdout != "" || !strings.Contains(e.stderr, "evaluate: no checkpoint has finite numbers: training diverged: the mean fisher of") {
		s.t.Errorf("of a run that diverged: got %v", e)
	}
}

// checkChart looks at the picture of several checkpoints, which table tells of, and at a file
// in its place.
func (s *site) checkChart(table ended, with func(...string) []string) {
	s.t.Helper()
	const name = "run/samples/checkpoints-test.png"
	if size := s.picture(name); size.X < 300 || size.Y < 200 || !strings.Contains(table.stderr, "over the steps are in "+name) {
		s.t.Errorf("a picture of %v, and it is said %s", size, table.stderr)
	}
	if err := os.WriteFile(s.path(name), []byte("mine"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if e := s.run(with("--step", "all")...); e.code != 1 || e.stdout != "" || !strings.Contains(e.stderr, "the picture "+name+" cannot be written: ") {
		s.t.Errorf("a file that is no picture: got %v", e)
	}
	s.must(with("--step", "all", "--picture", "none")...)
	if err := os.Remove(s.path(name)); err != nil {
		s.t.Fatal(err)
	}
}

// checkDamagedCheckpoint measures all checkpoints of the run, one of which is torn: it is
// left out with a warning, and ends the program where it is named.
func (s *site) checkDamagedCheckpoint(with func(...string) []string) {
	s.t.Helper()
	state := filepath.Join(s.dir, "run/ckpt/step-00000003/state.json")
	if err := os.Rename(state, state+".away"); err != nil {
		s.t.Fatal(err)
	}
	const problem = "run/ckpt/step-00000003/state.json: missing: the checkpoint is damaged"
	if e := s.run(with("--step", "all")...); e.code != 0 || !strings.Contains(e.stderr, "evaluate: warning: checkpoint skipped: "+problem) || !regexp.MustCompile(`(?m)^6 +[0-9.]`).MatchString(e.stdout) {
		s.t.Errorf("a damaged checkpoint among all: got %v", e)
	}
	if e := s.run(with("--step", "3,6")...); e.code != 1 || !strings.Contains(e.stderr, problem) {
		s.t.Errorf("a damaged checkpoint that is named: got %v", e)
	}
	if err := os.Rename(state+".away", state); err != nil {
		s.t.Fatal(err)
	}
}

// TestHelp asks every program for help: it teaches by an example and lists
// every flag in a group, in 80 columns. Each says what it was built of.
func TestHelp(t *testing.T) {
	long(t)
	s := newSite(t)
	for _, c := range []struct{ args, example, flag string }{
		{"train", "ddplaunch -nproc 2 train ", "--lr-energy"},
		{"sample", "sample --run ", "--stats"},
		{"evaluate", "evaluate --run ", "--ood"},
		{"experiment", "experiment run ", "experiment report"},
		{"experiment run", "experiment run frey ", "--again"},
		{"experiment report", "experiment report ", "--to"},
		{"experiment list", "experiment list ", "--out"},
		{"experiment compute", "experiment compute ", "--row"},
		{"ddplaunch", "ddplaunch -nproc 2 train ", "--max-restarts"},
		{"chaos", "chaos ", "--hosts"},
		{"onhosts", "onhosts --hosts ", "--gbit"},
		{"mkshards", "mkshards celeba ", "mkshards verify"},
		{"mkshards folder", "mkshards folder --src ", "--test-percent"},
		{"mkshards celeba", "mkshards celeba --src ", "--partition"},
		{"mkshards synth", "mkshards synth --size ", "--val"},
		{"collbench", "collbench -nproc 2 ", "--hosts"},
		{"stepbench", "stepbench --net ", "--warmup"},
		{"bench", "ddplaunch -nproc 8 bench ", "--fit-up-to"},
	} {
		name, _, _ := strings.Cut(c.args, " ")
		if e := s.run(name, "--version"); e.code != 0 || e.stderr != "" || !strings.HasPrefix(e.stdout, name+" of ebtrain ") || !strings.Contains(e.stdout, ", go1.") || strings.Count(e.stdout, "\n") != 1 {
			t.Errorf("%s --version: got %v", name, e)
		}
		for _, ask := range []string{"--help", "-help", "-h"} {
			e := s.run(append(strings.Fields(c.args), ask)...)
			if e.code != 0 || e.stderr != "" || !strings.Contains(e.stdout, "\n  "+c.example) || !strings.Contains(e.stdout, c.flag) {
				t.Errorf("%s %s: want exit 0, an example with %q, and %q; got %v", c.args, ask, c.example, c.flag, e)
			}
			for line := range strings.Lines(e.stdout) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%s %s: a line of %d columns: %s", c.args, ask, n, line)
				}
				if line == "Other:\n" || line == "Flags:\n" {
					t.Errorf("%s %s: flags in no group:\n%s", c.args, ask, e.stdout)
				}
			}
		}
	}
}

// TestSpellings types long flags with one dash and with underscores.
func TestSpellings(t *testing.T) {
	long(t)
	s := newSite(t)
	s.must("mkshards", "folder", "-src", s.pictures(), "-test_percent=25", "-size", "32", "-out", "shards")
	s.must("ddplaunch", "-nproc_per_node", "2", "-max-restarts", "0", "train", "-width", "4", "-latent=4", "-batch", "2", "-steps", "2",
		"--ckpt_every", "1", "-print_every=1", "-samples", "2", "-data", "shards", "-out", "run")
	s.must("sample", "-run", "run", "-n", "2", "-out=a.png")
	s.must("evaluate", "-run", "run", "-json", "-split", "train")
}

// pictures makes a folder of eight PNGs.
func (s *site) pictures() string {
	s.t.Helper()
	if err := os.Mkdir(s.path("pictures"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	for i := range 8 {
		f, err := os.Create(s.path("pictures", fmt.Sprintf("%d.png", i)))
		if err != nil {
			s.t.Fatal(err)
		}
		m := image.NewGray(image.Rect(0, 0, 40, 36))
		for k := range m.Pix {
			m.Pix[k] = byte(k * (i + 3))
		}
		if err := png.Encode(f, m); err != nil {
			s.t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	return "pictures"
}

// TestDivergence trains with a learning rate that no run survives.
func TestDivergence(t *testing.T) {
	long(t)
	for _, n := range []int{0, 2} {
		t.Run(fmt.Sprintf("-nproc %d", n), func(t *testing.T) {
			s := newSite(t)
			e := s.run(on(n, tiny("a", "--steps", "50", "--lr", "1e30"))...)
			want := regexp.MustCompile(`training diverged: [a-z_]+ is (NaN|[+-]Inf) at step [0-9]+: lower the learning rates in a new run$`)
			checkSentence(t, e, n, 1, want.String())
			if c, err := rundir.ReadConfig(s.path("a")); err != nil || !want.MatchString(c.Diverged) {
				t.Errorf("the run directory says %q, %v", c.Diverged, err)
			}
		})
	}
}

// checkComparison compares samples of the run with its data on one rank and on two,
// which find the same numbers; the second time the features of real pictures were
// kept.
func (s *site) checkComparison() {
	s.t.Helper()
	command := []string{"evaluate", "--run", "run", "--json", "--measures", "kid,prdc", "--samples", "20", "--batch", "8", "--threads", "1", "--feature-cache", "kept"}
	one, two := s.must(command...), s.must(on(2, command)...)
	if got := strings.TrimPrefix(two.stdout, "[0] "); got != one.stdout || !strings.Contains(got, `"name":"coverage"`) {
		s.t.Errorf("one rank finds\n%s\nand two find\n%s", one.stdout, two.stdout)
	}
	if kept, err := os.ReadDir(s.path("kept")); err != nil || len(kept) != 10 { // of five networks, the reference's and the floor's
		s.t.Errorf("%d files of features are kept, %v", len(kept), err)
	}
	evaluate := filepath.Join(bin, "evaluate")
	for differ, want := range map[string]string{
		"--seed $RANK":                                     `--seed is 0 on rank 0 and 1 on rank 1: give the same settings to all ranks`,
		"--step $((3 + 3 * (1 - RANK)))":                   `--step is 6 on rank 0 and 3 on rank 1: give the same settings to all ranks`,
		"--data synth:train=64,val=16,test=$((24 - RANK))": `--data holds other samples on rank 0 \(digest synth:.* n=24\) than on rank 1 \(synth:.* n=23\): give the same settings to all ranks`,
	} {
		e := s.run("ddplaunch", "-nproc", "2", "sh", "-c", evaluate+" --run run --measures kid --samples 20 --threads 1 --feature-cache none "+differ)
		if e.code == 0 || !regexp.MustCompile(`(?m)^\[[01](-1)?\] evaluate: (rank [01] \(.*\): )?`+want).MatchString(e.stderr) {
			s.t.Errorf("%s: want %s, got %v", differ, want, e)
		}
	}
}

// TestExplosion trains with a chain whose steps are too long: the sentence says so, and
// names it, in the first step.
func TestExplosion(t *testing.T) {
	long(t)
	for _, n := range []int{0, 2} {
		t.Run(fmt.Sprintf("-nproc %d", n), func(t *testing.T) {
			s := newSite(t)
			e := s.run(on(n, []string{"train", "--algo", "lebm", "--ngf", "2", "--nef", "8", "--latent", "4", "--batch", "8", "--steps", "9", "--samples", "0", "--posterior-step-size", "10", "--out", "a"})...)
			checkSentence(t, e, n, 1, `training diverged: at step 0 the posterior chain exploded: after 20 transitions ‖z‖/√d is [0-9.]+e\+[0-9]+, where N\(0, I\) has 1: lower --posterior-step-size from 10, or --lr-generator if all was well for long$`)
		})
	}
}
