package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/launch/exitcode"
	"ebtrain/trainer/device"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

// TestInterrupt stops the work in the middle of a training, as its own process
// by signals and by a context, and goes on: the losses are those of a run that was
// never stopped.
func TestInterrupt(t *testing.T) {
	s := newSite(t)
	metrics := filepath.Join(s.out, "long", "plain", "seed-1", "metrics.jsonl")
	lines := func(n int) func() bool {
		return func() bool {
			b, err := os.ReadFile(metrics)
			return err == nil && bytes.Count(b, []byte("\n")) >= n
		}
	}
	cmd := exec.Command(s.app.self, "run", "long", "--jobs", "2", "--out", s.out) // always as many threads: sums depend on them
	cmd.Env = s.app.environ
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err := eventually(lines(3))
	for range 2 { // as timeout(1) does: it is one request
		if err := errors.Join(err, cmd.Process.Signal(syscall.SIGINT)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
	}
	_ = cmd.Wait() // its exit code is looked at
	if want := "stopped, 0 of 1 cells finished; the same command goes on: experiment run long --jobs 2 --out " + s.out; cmd.ProcessState.ExitCode() != exitcode.Requeue || !strings.Contains(stderr.String(), want) {
		t.Fatalf("exit %d, want %d and %q; stderr: %s", cmd.ProcessState.ExitCode(), exitcode.Requeue, want, stderr.String())
	}
	st := s.load("long", "plain", 1)
	if st.Measured != nil || st.Begun == nil || len(st.Begun.Pieces) != 1 || st.Begun.Pieces[0].Ended != "exit 75" || st.Begun.Pieces[0].CPU <= 0 {
		t.Fatalf("after the interruption: %+v", st.Begun)
	}
	done := len(s.losses("long", "plain", "seed-1"))
	if done >= 120 {
		t.Fatal("nothing was left to do")
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = eventually(lines(done + 3)) // if it does not come to that, the work ends by itself
		cancel()
	}()
	out, err := s.run(ctx, "run", "long", "--jobs", "2")
	if _, ok := errors.AsType[*stoppedError](err); !ok || !strings.Contains(out, "plain seed 1: interrupted after ") {
		t.Fatalf("got %v\n%s", err, out)
	}
	s.must("run", "long", "--jobs", "2")
	st = s.load("long", "plain", 1)
	var ended []string
	for _, p := range st.Begun.Pieces {
		ended = append(ended, p.Program+" "+p.Ended)
	}
	if want := []string{"train exit 75", "train exit 75", "train exit 0", "evaluate exit 0"}; !slices.Equal(ended, want) {
		t.Errorf("pieces %q, want %q", ended, want)
	}
	if sum := st.Begun.CPU("train"); st.Measured == nil || st.Measured.Train != sum || sum <= st.Begun.Pieces[2].CPU {
		t.Errorf("CPU time of training %v, of its pieces %v", st.Measured, st.Begun.Pieces)
	}

	whole := &site{t: t, app: s.app, out: t.TempDir()}
	whole.must("run", "long", "--jobs", "2")
	if a, b := s.losses("long", "plain", "seed-1"), whole.losses("long", "plain", "seed-1"); len(a) != 120 || !reflect.DeepEqual(a, b) {
		t.Errorf("%d losses, those of a run that was not stopped differ", len(a))
	}
}

// TestBroken: what breaks is named with the reason, and does not stop others.
func TestBroken(t *testing.T) {
	s := newSite(t)
	out := s.fails([]string{"run", "broken"}, "1 of 2 cells of broken came to nothing (bad seed 1)")
	if want := "bad seed 1: came to nothing: train: exit 2: want --beta1 of at least 0 and below 1"; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
	if st := s.load("broken", "good", 1); st.Measured == nil || st.Measured.Broken != nil {
		t.Error("the good cell was not done")
	}
	s.wantReport("broken", "- came to nothing (train: exit 2: want --beta1")
	out = s.fails([]string{"run", "unmeasured"}, "came to nothing (plain seed 1)")
	if want := "plain seed 1: came to nothing: evaluate: exit 1: --measures ll of "; !strings.Contains(out, want) {
		t.Errorf("want %q in\n%s", want, out)
	}
}

// TestForeign: a cell of another commit or of other settings is named, and done
// anew with --again only.
func TestForeign(t *testing.T) {
	s := newSite(t)
	run := []string{"run", "tiny", "--rows", "plain", "--steps", "3"}
	s.must(run...)
	first := s.load("tiny", "plain", 1)
	if !first.Measured.TriedOut || first.Measured.Steps != 3 {
		t.Errorf("measured %+v, want a try of 3 steps", first.Measured)
	}
	s.fails([]string{"run", "tiny"}, "2 cells of tiny in "+s.out+" were begun by other programs, with other settings, on other data, on another machine where times are measured, or to be measured otherwise", "plain seed 1 with --steps=3", "give --again to do them anew, or another --out")
	begun := *first.Begun
	begun.Commit = "0123"
	if err := (cell.Cell{Root: s.out, Experiment: "tiny", Row: "plain", Seed: 1}).Begin(begun); err != nil {
		t.Fatal(err)
	}
	s.fails(run, "1 cell of tiny", "plain seed 1 by commit 0123")
	s.must(append(run, "--again")...)
	if st := s.load("tiny", "plain", 1); st.Begun.Commit != first.Begun.Commit || !st.Finished() {
		t.Errorf("after --again: %+v", st.Begun)
	}
	s.wantReport("tiny", "**Only tried out, with 3 steps: nothing is judged.**")
}

// TestForeignMachine: where times are measured, a finished cell of another machine is done anew
// with --again only; elsewhere it counts.
func TestForeignMachine(t *testing.T) {
	own := machine(device.GPUs())
	for _, c := range []struct {
		alone   bool
		machine string
		want    string
	}{{true, own, ""}, {true, "A far one", "on another machine: A far one"}, {false, "A far one", ""}} {
		w := &work{e: plan.Experiment{Alone: c.alone}}
		got := w.foreign(task{status: cell.Status{Begun: &cell.Begun{}, Measured: &cell.Measured{Machine: c.machine}}})
		if got != c.want {
			t.Errorf("times measured: %t, cell of %q: it says %q, want %q", c.alone, c.machine, got, c.want)
		}
	}
}

// TestLocked: two processes do not run one experiment.
func TestLocked(t *testing.T) {
	s := newSite(t)
	lock, err := cell.Lock(s.out, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	s.fails([]string{"run", "tiny"}, "another process is running the experiment in ")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestMistakes types command lines that are wrong.
func TestMistakes(t *testing.T) {
	a := app{catalogue: catalogueOfTests(), bin: t.TempDir(), stdout: &strings.Builder{}}
	for _, c := range []struct{ args, want string }{
		{"", "no command given"},
		{"tiny", `"tiny" is an experiment, and the command comes first, as in experiment run tiny`},
		{"--out a list", "--out: the command comes first, as in experiment list --out"},
		{"help walk", `unknown command "walk"`},
		{"walk", `unknown command "walk": want list, run, report, pack or compute`},
		{"list huge", `unknown experiment "huge"`},
		{"run", "run: want the name of one experiment (experiment list shows them), got 0"},
		{"run tiny long", "got 2"},
		{"run huge", `unknown experiment "huge": want one of tiny, long, broken`},
		{"run tiny --jobs 0", "want --jobs from 1 to 1024, got 0"},
		{"run tiny --nice 20", "want --nice from 0 to 19, got 20"},
		{"run tiny --steps -1", "want --steps of at least 0, got -1"},
		{"run tiny --seeds 1,b", `--seeds "b": want whole numbers of at least 0`},
		{"run tiny --rows plane", "--rows plane: tiny has no such row: want some of plain, wild"},
		{"run sums --steps 3", "--steps 3: sums is computed and trains nothing, so there are no steps to do fewer of: leave --steps out"},
		{"run tiny --out=", "--out is empty"},
		{"run tiny", "there is no program " + a.bin + "/train: train, evaluate, sample and ddplaunch must be in the folder of experiment"},
		{"report --to a.txt", "--to a.txt: want a name that ends in .md"},
		{"report huge", `unknown experiment "huge"`},
		{"report --out " + t.TempDir(), "no cell is finished in "},
		{"pack --to kept", "pack: want names of experiments"},
		{"pack tiny", "and --to FOLDER"},
		{"pack huge --to kept", `unknown experiment "huge"`},
		{"pack tiny --to kept --out " + t.TempDir(), "no cell of tiny is finished in "},
		{"compute tiny --row plain", "tiny is no computed experiment"},
		{"compute sums --row four", `--row "four": want one of three, none`},
		{"compute sums --row three --data x", `--data "x": sums is computed on none`},
	} {
		if err := a.run(t.Context(), strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("experiment %s: %v, want %q", c.args, err, c.want)
		}
	}
}

// TestPick: what is asked for twice is done once.
func TestPick(t *testing.T) {
	o := runOptions{rows: []string{"wild", "plain", "wild"}, seeds: []string{"2", "1", "2"}}
	rows, seeds, err := o.pick(catalogueOfTests()[0])
	if err != nil || len(rows) != 2 || rows[0].Name != "wild" || rows[1].Name != "plain" || !slices.Equal(seeds, []uint64{2, 1}) {
		t.Errorf("got %v, %v, %v; want wild and plain, 2 and 1", rows, seeds, err)
	}
}

// TestRunDiverged: a program that came to nothing diverged if its run says so, in whatever
// words; that train says so is seen with the real program in TestRun.
func TestRunDiverged(t *testing.T) {
	said := func(diverged string) string {
		d, err := rundir.Create(filepath.Join(t.TempDir(), "run"), rundir.Config{Program: "train"}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Diverged(diverged), d.Close()); err != nil {
			t.Fatal(err)
		}
		return d.Path()
	}
	for dir, want := range map[string]bool{said("upper is NaN"): true, said(""): false, t.TempDir(): false} {
		err := orDiverged(&brokenError{cell.Broken{Program: "train", Line: "any words"}}, func() bool { return runDiverged(dir) })
		if broken, ok := errors.AsType[*brokenError](err); !ok || broken.Diverged != want {
			t.Errorf("%s: %+v, want %v", dir, err, want)
		}
	}
	if err := orDiverged(errStopped, func() bool { return true }); !errors.Is(err, errStopped) {
		t.Errorf("one that was interrupted: %v", err)
	}
}
