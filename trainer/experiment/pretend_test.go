package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/launch/exitcode"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// pretendVariable makes the test binary be a program that only pretends to train. Its
// value, if not empty, is a build by which it replaces itself and those beside it.
const pretendVariable = "EXPERIMENT_PRETENDS"

// programs are those that do a cell.
var programs = []string{"train", "evaluate", "sample"}

// meanwhile is the file in a cell that has its cell.json as it was while train ran.
const meanwhile = "meanwhile.json"

// pretend is that program: it leaves the metrics of a run of 6 steps.
func pretend(next string, args []string) error {
	out, lines := "", ""
	for _, arg := range args {
		if dir, ok := strings.CutPrefix(arg, "--out="); ok {
			out = dir
		}
	}
	for step := range 6 {
		lines += fmt.Sprintf(`{"step":%d,"losses":{"upper":7}}`+"\n", step)
	}
	begun, err := os.ReadFile(filepath.Join(out, "cell.json"))
	err = errors.Join(err, os.WriteFile(filepath.Join(out, meanwhile), begun, 0o644),
		os.WriteFile(filepath.Join(out, "metrics.jsonl"), []byte(lines), 0o644))
	if next == "" {
		return err
	}
	return errors.Join(err, install(filepath.Dir(args[0]), next))
}

// pretendToEvaluate is the program evaluate, by which a run of 6 steps has the likelihood 6
// at its end, and no finite number after 3.
func pretendToEvaluate(args []string) (code int) {
	if slices.Contains(args, "--step=3") {
		fmt.Println(`{"diverged":"the mean energy is NaN"}`)
		return exitcode.Failed
	}
	fmt.Println(`{"ll":6}`)
	return exitcode.Done
}

// install makes the programs in dir be a build.
func install(dir, build string) error {
	var errs []error
	for _, name := range programs {
		path := filepath.Join(dir, name)
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, os.Symlink(build, path))
	}
	return errors.Join(errs...)
}

// newPretence is a site whose programs only pretend, and whose one experiment is called
// pretended.
func newPretence(t *testing.T) *site {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, out: t.TempDir(), app: app{bin: t.TempDir(), self: self, environ: append(os.Environ(), pretendVariable+"="), stderr: os.Stderr}}
	if err := install(s.app.bin, self); err != nil {
		t.Fatal(err)
	}
	s.app.catalogue = []plan.Experiment{{
		Name: "pretended", About: "Nothing is trained.", Data: &plan.DataSet{Name: "pictures", Builtin: "synth:train=64,val=16,test=24"},
		Seeds: []uint64{1, 2}, Flags: map[string]string{"steps": "6"}, Columns: []string{"upper-first", "cpu-s"}, Rows: []plan.Row{{Name: "plain"}},
		Checks: []judge.Check{judge.Bound{Of: judge.Rows("upper-first", "plain"), Lo: 0, Hi: 9}},
	}}
	return s
}

// otherBuild is a build of the programs that differs in a byte at the end.
func otherBuild(t *testing.T, of string) string {
	t.Helper()
	from, err := os.Open(of)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "build")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	_, err2 := to.WriteString("\n")
	if err := errors.Join(err, err2, to.Close(), from.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRebuilt: a cell that was done by programs of two builds is not signed, and no
// further one is begun.
func TestRebuilt(t *testing.T) {
	s := newPretence(t)
	next := otherBuild(t, s.app.self)
	unchanged := s.app.environ
	s.app.environ = append(slices.Clone(unchanged), pretendVariable+"="+next)
	s.fails([]string{"run", "pretended"}, "pretended plain seed 1: the programs were rebuilt during the run: they were of commit unknown-", "and are of unknown-", "give --again to do its cells anew")
	if st := s.load("pretended", "plain", 1); st.Begun == nil || st.Measured != nil {
		t.Errorf("got %+v, want a cell that was begun and not signed", st)
	}
	if st := s.load("pretended", "plain", 2); st.Begun != nil {
		t.Errorf("another cell was begun: %+v", st.Begun)
	}
	unread := &work{app: s.app, e: s.app.catalogue[0]}
	evaluate := filepath.Join(s.app.bin, "evaluate")
	if err := errors.Join(os.Remove(evaluate), os.Symlink("evaluate", evaluate)); err != nil {
		t.Fatal(err)
	}
	if err := unread.sameBuild(); err == nil || strings.Contains(err.Error(), "rebuilt") || !strings.Contains(err.Error(), "cannot be read any more") || !strings.Contains(err.Error(), evaluate) {
		t.Errorf("of a program that cannot be read: %v", err)
	}
	if err := install(s.app.bin, next); err != nil {
		t.Fatal(err)
	}
	s.app.catalogue[0].Sample = map[string]string{"n": "1"}
	s.app.environ = append(slices.Clone(unchanged), pretendVariable+"="+s.app.self)
	s.fails([]string{"run", "pretended", "--again"}, "the programs were rebuilt during the run")
	if p := s.load("pretended", "plain", 1).Begun.Pieces; len(p) != 1 || p[0].Program != "train" {
		t.Errorf("of a cell that was to be sampled from, too, %+v were started, want train alone", p)
	}
	s.app.catalogue[0].Sample, s.app.environ = nil, unchanged
	s.must("run", "pretended", "--again")
	if a, b := s.load("pretended", "plain", 1), s.load("pretended", "plain", 2); a.Measured == nil || b.Measured == nil || a.Measured.Commit != b.Measured.Commit {
		t.Errorf("done anew: %+v and %+v", a.Measured, b.Measured)
	}
	if err := os.Remove(filepath.Join(s.app.bin, "sample")); err != nil {
		t.Fatal(err)
	}
	w := &work{app: s.app, e: s.app.catalogue[0], tools: tools{commit: "c0ffee"}}
	if err := w.sameBuild(); err == nil || !strings.HasPrefix(err.Error(), "the programs were rebuilt during the run: there is no program ") {
		t.Errorf("in the middle of a build: %v", err)
	}
}

// TestCurveOfWhatDiverged: a checkpoint whose numbers are not finite has no point of a curve,
// and the cell has all that can be measured at its end.
func TestCurveOfWhatDiverged(t *testing.T) {
	s := newPretence(t)
	e := &s.app.catalogue[0]
	e.Columns, e.Curves, e.Checks = []string{"ll"}, []plan.Curve{{Name: "ll", Measure: "ll", Every: 3}}, nil
	s.must("run", "pretended", "--seeds", "1")
	m := s.load("pretended", "plain", 1).Measured
	if m.Broken != nil || m.Values["ll"] != 6 || !slices.Equal(m.Curves["ll"], []measure.Point{{X: 6, Y: 6}}) {
		t.Errorf("measured %+v", m)
	}
	e.Flags = map[string]string{"steps": "3"} // the end is that checkpoint
	s.must("run", "pretended", "--seeds", "2")
	if m = s.load("pretended", "plain", 2).Measured; m.Broken == nil || !m.Broken.Diverged {
		t.Errorf("measured %+v, want that it diverged", m)
	}
}

// TestOtherData: a cell that was begun on other data is named, and done anew with --again
// only; the report has none of it.
func TestOtherData(t *testing.T) {
	s := newPretence(t)
	const other = "synth:seed=9,train=64,val=16,test=24"
	s.must("run", "pretended", "--seeds", "1")
	s.must("run", "pretended", "--seeds", "2", "--data", other)
	s.fails([]string{"run", "pretended", "--data", other}, "1 cell of pretended in "+s.out+" was begun by other programs, with other settings, on other data, on another machine where times are measured, or to be measured otherwise", "(plain seed 1 on other data: test synth:", "seed=0 split=test n=24")
	s.fails([]string{"run", "pretended"}, "plain seed 2 on other data: test synth:", "seed=9 split=test n=24")
	s.wantReport("pretended", "- of other data (test synth:")
	if st := s.load("pretended", "plain", 2); st.Measured.Data["train"] == "" || st.Measured.Data["train"] == s.load("pretended", "plain", 1).Measured.Data["train"] {
		t.Errorf("measured on %v", st.Measured.Data)
	}
	s.must("run", "pretended", "--again", "--data", other)
	if out := s.must("run", "pretended", "--data", other); !strings.HasPrefix(out, "all 2 cells of pretended are finished") {
		t.Errorf("done anew, it says\n%s", out)
	}
}

// TestOtherQuestions: a finished cell that was asked for something else is named; one that was
// not measured yet is asked what is asked now, and of one from before nothing is known.
func TestOtherQuestions(t *testing.T) {
	s := newPretence(t)
	e := &s.app.catalogue[0]
	e.Columns, e.Evaluate = append(e.Columns, "ll"), map[string]string{"split": "test"}
	s.must("run", "pretended", "--seeds", "1")
	e.Evaluate = map[string]string{"split": "val"}
	s.fails([]string{"run", "pretended"}, "1 cell of pretended in", "(plain seed 1 asked for evaluate --split=test): give --again")
	c := cell.Cell{Root: s.out, Experiment: "pretended", Row: "plain", Seed: 1}
	begun := s.load("pretended", "plain", 1).Begun
	if err := c.Reopen(); err != nil {
		t.Fatal(err)
	}
	s.must("run", "pretended")
	if got := s.load("pretended", "plain", 1).Begun.Questions; !slices.Equal(got, e.Questions(e.Rows[0])) {
		t.Errorf("measured again it was asked %q", got)
	}
	begun.Questions = nil
	if err := c.Begin(*begun); err != nil {
		t.Fatal(err)
	}
	e.Columns = e.Columns[:2]
	s.fails([]string{"run", "pretended"}, "(plain seed 2 asked for columns cpu-s,ll,upper-first)")
	if out := s.must("run", "pretended", "--seeds", "1"); !strings.HasPrefix(out, "the 1 cell of pretended is finished") {
		t.Errorf("of a cell of unknown questions it says\n%s", out)
	}
}

// TestOtherBeside: a cell that was compared with other data is named, too.
func TestOtherBeside(t *testing.T) {
	s := newPretence(t)
	s.app.catalogue[0].Beside = []plan.DataSet{{Name: "svhn", Make: []string{"svhn"}, Source: "digits"}}
	with := func(seed string) []string {
		return []string{"run", "pretended", "--beside", "svhn=synth:test=16,seed=" + seed}
	}
	s.must(with("5")...)
	s.fails(with("6"), "(plain seed 1 on other data: svhn/test synth:", "seed=5 split=test n=16", "; plain seed 2 on other data: svhn/test synth:")
	for _, args := range [][]string{with("5"), {"run", "pretended"}} {
		if out := s.must(args...); !strings.HasPrefix(out, "all 2 cells of pretended are finished") {
			t.Errorf("experiment %q says\n%s", args, out)
		}
	}
}

// TestOtherSet: where rows have data of their own, finished cells of other ones are named,
// too, whichever of both was given; data of rows that are finished need not be there.
func TestOtherSet(t *testing.T) {
	const other = "own=synth:seed=9,train=64,val=16,test=24"
	for _, c := range []struct{ first, then, of string }{{"", other, "seed=0"}, {other, "", "seed=9"}} {
		s := newPretence(t)
		e := &s.app.catalogue[0]
		with := func(set string) []string {
			args := []string{"run", "pretended", "--rows", "plain"}
			if set != "" {
				args = append(args, "--set", set)
			}
			return args
		}
		e.Rows = []plan.Row{
			{Name: "plain", Data: &plan.DataSet{Name: "own", Builtin: e.Data.Builtin}},
			{Name: "far", Data: &plan.DataSet{Name: "far", Make: []string{"text"}, Source: "a file"}},
		}
		e.Data = nil
		s.must(with(c.first)...)
		s.fails(with(c.then), "(plain seed 1 on other data: test synth:", c.of+" split=test n=24")
		if out := s.must(with(c.first)...); !strings.HasPrefix(out, "all 2 cells of pretended are finished") {
			t.Errorf("on the same data it says\n%s", out)
		}
		s.fails([]string{"run", "pretended"}, "the data set far is not in ")
	}
}

// TestUnknownData: cells from before digests were kept are finished, on whatever data;
// and where nothing is to be done no data are asked for.
func TestUnknownData(t *testing.T) {
	s := newPretence(t)
	s.must("run", "pretended")
	for _, seed := range []uint64{1, 2} {
		c := cell.Cell{Root: s.out, Experiment: "pretended", Row: "plain", Seed: seed}
		st := s.load("pretended", "plain", seed)
		st.Begun.Data, st.Measured.Data = nil, nil
		if err := errors.Join(c.Begin(*st.Begun), c.Finish(*st.Measured)); err != nil {
			t.Fatal(err)
		}
	}
	s.app.catalogue[0].Data = &plan.DataSet{Name: "nowhere", Make: []string{"text"}, Source: "a file"}
	for _, args := range [][]string{{"run", "pretended"}, {"run", "pretended", "--data", "synth:seed=9"}} {
		if out := s.must(args...); !strings.HasPrefix(out, "all 2 cells of pretended are finished") {
			t.Errorf("experiment %q says\n%s", args, out)
		}
	}
	nowhere := filepath.Join(s.out, "nowhere")
	s.fails([]string{"run", "pretended", "--data", nowhere}, "--data "+nowhere+": ")
	s.wantReport("pretended", "| plain |  | 2 |")
}

// TestKilled: while a program runs, cell.json says so; where nobody saw its end, what it
// cost is not known, and the cell says that it is not.
func TestKilled(t *testing.T) {
	s := newPretence(t)
	s.must("run", "pretended", "--seeds", "1")
	c := cell.Cell{Root: s.out, Experiment: "pretended", Row: "plain", Seed: 1}
	whole := s.load("pretended", "plain", 1)
	if m := whole.Measured; m.Values["cpu-s"] != m.Train || m.Train <= 0 || len(m.Notes) > 0 || len(whole.Begun.Pieces) != 1 || whole.Begun.Pieces[0].Ended != "exit 0" {
		t.Errorf("measured %+v with %+v", m, whole.Begun.Pieces)
	}
	text, err := os.ReadFile(filepath.Join(c.Dir(), meanwhile))
	if err != nil {
		t.Fatal(err)
	}
	var then cell.Begun
	if err := json.Unmarshal(text, &then); err != nil {
		t.Fatal(err)
	}
	if p := then.Pieces; len(p) != 1 || p[0].Program != "train" || p[0].Ended != "" || p[0].Started.IsZero() || p[0].Threads < 1 {
		t.Fatalf("while train ran the cell had %+v, want it without an end", p)
	}
	if err := errors.Join(c.Begin(then), c.Reopen()); err != nil { // as if all had been killed
		t.Fatal(err)
	}
	s.must("run", "pretended", "--seeds", "1")
	m := s.load("pretended", "plain", 1).Measured
	const note = "train was killed together with experiment: what it cost until then is not known, and no part of any processor time"
	if _, known := m.Values["cpu-s"]; known || m.Values["upper-first"] != 7 || !slices.Equal(m.Notes, []string{note}) {
		t.Errorf("measured %v with the notes %q, want no cpu-s and %q", m.Values, m.Notes, note)
	}
	s.wantReport("pretended", "- plain seed 1: "+note)
}

// TestLostLines: a cell whose metrics.jsonl lacks lines has no number made of the others.
func TestLostLines(t *testing.T) {
	s := newPretence(t)
	out := s.fails([]string{"run", "pretended", "--seeds", "1", "--steps", "7"}, "1 of 1 cells of pretended came to nothing (plain seed 1)")
	if want := "plain seed 1: came to nothing: measuring: exit 0: upper-first: metrics.jsonl has lost lines: it has 6 of 7: "; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
}

// TestNotStarted: a program that could not be started has cost nothing.
func TestNotStarted(t *testing.T) {
	s := newPretence(t)
	path := otherBuild(t, s.app.self)
	if err := errors.Join(os.Chmod(path, 0o644), install(s.app.bin, path)); err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"run", "pretended", "--seeds", "1"}, "train: permission denied")
	if st := s.load("pretended", "plain", 1); st.Begun == nil || len(st.Begun.Pieces) != 0 {
		t.Errorf("got %+v", st.Begun)
	}
}

// TestDamaged: a file of a cell that is damaged is named, with what is to be done; that
// helps, and so does --again, which does no other cell.
func TestDamaged(t *testing.T) {
	s := newPretence(t)
	s.must("run", "pretended")
	c := cell.Cell{Root: s.out, Experiment: "pretended", Row: "plain", Seed: 1}
	begun, measured := c.Files()[0], c.Files()[1]
	damage := func(file string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	damage(measured)
	advice := "remove this one file, and experiment run measures the cell again"
	s.fails([]string{"run", "pretended"}, measured+" is damaged: ", advice)
	for _, command := range []string{"list", "report"} { // they go on
		if out := s.must(command); !strings.Contains(out, measured+" is damaged: ") || !strings.Contains(out, advice) || !strings.Contains(out, "1 of 2") {
			t.Errorf("%s says\n%s", command, out)
		}
	}
	if err := os.Remove(measured); err != nil {
		t.Fatal(err)
	}
	s.must("run", "pretended")
	config := filepath.Join(c.Dir(), "config.json")
	for _, file := range []string{measured, begun, config} {
		damage(file)
		if file == config { // nobody asks for it once the cell is finished
			if err := c.Reopen(); err != nil {
				t.Fatal(err)
			}
		}
		out := s.must("run", "pretended", "--again")
		if st := s.load("pretended", "plain", 1); !strings.Contains(out, "1 cell to do, 1 finished before") || !st.Finished() || len(st.Begun.Pieces) != 1 {
			t.Errorf("with a damaged %s --again says\n%s, and leaves %+v", file, out, st.Begun)
		}
	}
	damage(begun)
	s.fails([]string{"run", "pretended"}, begun+" is damaged: ", "remove its folder to do the cell anew, or give run --again")
}
