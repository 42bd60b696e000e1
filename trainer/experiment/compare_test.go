package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/trainer/experiment/cell"
)

// TestCompare trains on one rank and on two, by the launcher: equal bits where they
// are promised, near ones elsewhere; each row on data of its own.
func TestCompare(t *testing.T) {
	s := newSite(t)
	s.fails([]string{"run", "ranks", "--data", "synth"}, "the rows of ranks have data of their own: give each data set by --set")
	s.fails([]string{"run", "ranks"}, "the data set points is not in", "give --set points=DIR, what mkshards checkerboard made of nothing")
	s.fails([]string{"run", "ranks", "--set", "point=x"}, "--set point=x: want NAME=DIR, and ranks trains on these data sets: [pictures points]")
	points := filepath.Join(s.out, "points")
	if out, err := exec.Command(filepath.Join(bin, "mkshards"), "checkerboard", "--out", points).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.must("run", "ranks", "--set", "points="+points)
	equal, near := s.load("ranks", "equal", 1), s.load("ranks", "near", 1)
	for _, st := range []cell.Status{equal, near} {
		m := st.Measured
		if m == nil || m.Broken != nil || len(m.Command) != 2 || !slices.Equal(m.Command[1][:3], []string{"ddplaunch", "--nproc-per-node=2", "train"}) {
			t.Fatalf("measured %+v", m)
		}
		for _, name := range []string{"losses", "step-s-1", "step-s-2", "cpu-step", "mem-1", "mem-2", "days-here", "tera-ops", "days-h100"} {
			if m.Values[name] <= 0 {
				t.Errorf("%s is %v", name, m.Values[name])
			}
		}
		if p := st.Begun.Pieces; len(p) != 2 || p[0].Ranks != 1 || p[1].Ranks != 2 || p[0].Ended != "exit 0" {
			t.Errorf("processes %+v, want one of one rank and one of two", p)
		}
	}
	if v := equal.Measured.Values; v["loss-gap"] != 0 || v["steps-published"] != 300_000 || v["batch-published"] != 100 {
		t.Errorf("--deterministic: %v, want no difference, and 300,000 steps of 100", v)
	}
	if gap := near.Measured.Values["loss-gap"]; gap > 1e-3 {
		t.Errorf("losses differ by %v", gap)
	}
	if a, b := s.losses("ranks", "equal", "seed-1", "ranks-1"), s.losses("ranks", "equal", "seed-1", "ranks-2"); len(a) != 2 || !reflect.DeepEqual(a, b) {
		t.Errorf("losses %v on one rank, %v on two", a, b)
	}
	s.checkHalf(equal)
	text := s.must("report", "ranks")
	if !strings.Contains(text, "ranks: 2 of 2 cells finished") {
		t.Errorf("report says\n%s", text)
	}
}

// checkHalf takes up a cell of which one rank is done: two ranks are trained alone.
func (s *site) checkHalf(st cell.Status) {
	t := s.t
	t.Helper()
	c := cell.Cell{Root: s.out, Experiment: "ranks", Row: "equal", Seed: 1}
	half := *st.Begun
	half.Pieces = half.Pieces[:1]
	if err := c.Begin(half); err != nil {
		t.Fatal(err)
	}
	if err := c.Reopen(); err != nil {
		t.Fatal(err)
	}
	one := filepath.Join(c.Dir(), "ranks-1", "metrics.jsonl")
	before, err := os.Stat(one)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.run(context.Background(), "run", "ranks", "--rows", "equal")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	after, err := os.Stat(one)
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Errorf("one rank was trained again (%v)", err)
	}
	if again := s.load("ranks", "equal", 1); again.Measured == nil || again.Measured.Values["loss-gap"] != 0 || len(again.Begun.Pieces) != 2 {
		t.Errorf("taken up again it comes to %+v", again.Measured)
	}
}
