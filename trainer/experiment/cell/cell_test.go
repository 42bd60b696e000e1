package cell

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ebtrain/trainer/experiment/measure"
)

func TestRoundTrip(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "frey", Row: "n-5", Seed: 3}
	if want := filepath.Join(c.Root, "frey", "n-5", "seed-3"); c.Dir() != want || c.String() != "frey n-5 seed 3" {
		t.Errorf("%s in %s", c, c.Dir())
	}
	s, err := c.Load()
	if err != nil || s.Begun != nil || s.Measured != nil || s.Finished() {
		t.Errorf("of nothing: %+v, %v", s, err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := Begun{Commit: "abc", Settings: []string{"--lr=1"}, Steps: 9, Started: now, Pieces: []Piece{
		{Program: "train", Started: now, CPU: 1.5, Wall: 2, Threads: 1, Ended: "exit 75"}, {Program: "train", CPU: 2}, {Program: "evaluate", CPU: 4, Ended: "exit 0"},
	}}
	if err := c.Begin(b); err != nil {
		t.Fatal(err)
	}
	m := Measured{Commit: "abc", Steps: 9, Ended: now, Values: map[string]float64{"ll": 1.0 / 3}, Curves: map[string][]measure.Point{"ll": {{X: 1, Y: 2}}}}
	if err := c.Finish(m); err != nil {
		t.Fatal(err)
	}
	b.Format, m.Format = format, format
	s, err = c.Load()
	if err != nil || !reflect.DeepEqual(*s.Begun, b) || !reflect.DeepEqual(*s.Measured, m) || !s.Finished() {
		t.Errorf("got %+v, %+v, %v", s.Begun, s.Measured, err)
	}
	if b.CPU("train") != 3.5 || b.CPU("evaluate") != 4 || b.CPU("") != 7.5 {
		t.Errorf("CPU times %v, %v, %v", b.CPU("train"), b.CPU("evaluate"), b.CPU(""))
	}
	if lost := b.Lost(); !slices.Equal(lost, []string{"train"}) {
		t.Errorf("the end of %v is not known, want that of train", lost)
	}
	if err := c.Reopen(); err != nil {
		t.Error(err)
	}
	if err := c.Reopen(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if s, err := c.Load(); err != nil || s.Measured != nil || s.Begun == nil {
		t.Errorf("reopened: %+v, %v", s, err)
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.Dir()); err == nil {
		t.Error("it is still there")
	}
}

// A folder that is no cell is not removed.
func TestRemoveOther(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	if err := os.MkdirAll(c.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(); err == nil {
		t.Error("a folder without cell.json was removed")
	}
	if _, err := os.Stat(c.Dir()); err != nil {
		t.Error(err)
	}
}

func TestFinished(t *testing.T) {
	for _, tt := range []struct {
		m    *Measured
		want bool
	}{
		{nil, false}, {&Measured{}, true}, {&Measured{Broken: &Broken{Line: "no space left"}}, false}, {&Measured{Broken: &Broken{Diverged: true}}, true},
	} {
		if got := (Status{Measured: tt.m}).Finished(); got != tt.want {
			t.Errorf("%+v: %v", tt.m, got)
		}
	}
}

func TestDamaged(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	if err := c.Begin(Begun{}); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"{": "is damaged", `{"format":9}`: "has format 9, this program reads 1: give another --out", `{}`: "is damaged: it does not say its format", `null`: "is damaged: it does not say its format"} {
		if err := os.WriteFile(c.begunFile(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Load(); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), c.begunFile()) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A byte of a file that flips changes nothing, or is damage: never another number, and never
// another seed, commit or cost.
func TestFlippedBytes(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	b := Begun{Commit: "abc", Settings: []string{"--seed=1", "--a=<&>"}, Data: Data{"train": "d"}, Questions: []string{"q"}, Steps: 9, TriedOut: true, Started: at,
		Pieces: []Piece{{Program: "train", Started: at, CPU: 1.5, Wall: 2.0 / 3, Threads: 2, Ranks: 2, Ended: "exit 0"}}}
	m := Measured{Commit: "abc", Steps: 9, Machine: "a & b", Ended: at, CPU: 1.25, Values: map[string]float64{"ll": 1.0 / 3},
		Curves: map[string][]measure.Point{"ll": {{X: 1, Y: 2}}}, Notes: []string{"n"}, Quality: struct{ Z, A int }{1, 2}}
	if err := errors.Join(c.Begin(b), c.Finish(m)); err != nil {
		t.Fatal(err)
	}
	whole, err := c.Load()
	if err != nil || whole.Measured.Values["ll"] != 1.0/3 || whole.Measured.Checksum != "" || whole.Begun.Pieces[0].CPU != 1.5 || whole.Begun.Checksum != "" {
		t.Fatalf("%+v, %v", whole, err)
	}
	t.Run("cell.json", func(t *testing.T) {
		flip(t, c, c.begunFile(), func(s Status) bool { return s.Begun == nil }, whole)
	})
	t.Run("measured.json", func(t *testing.T) {
		flip(t, c, c.measuredFile(), func(s Status) bool { return s.Measured == nil }, whole)
	})
}

// flip flips bits of a file of c, which is whole: each is noticed, of which the file is then
// missing, or changes nothing. In the end it takes the file's checksum.
func flip(t *testing.T, c Cell, file string, missing func(Status) bool, whole Status) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, bit := range []byte{1, 4, 32} {
			flipped := slices.Clone(text)
			flipped[i] ^= bit
			if err := os.WriteFile(file, flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := c.Load()
			if err == nil && !reflect.DeepEqual(s, whole) || err != nil && !missing(s) {
				t.Errorf("byte %d, %q as %q, gives %+v, %+v, %v", i, text[i], flipped[i], s.Begun, s.Measured, err)
			}
		}
	}
	old := strings.Split(string(text), ",\n  \"checksum\"")
	if err := os.WriteFile(file, []byte(old[0]+"\n}"), 0o644); err != nil || len(old) != 2 {
		t.Fatal(old, err)
	}
	if s, err := c.Load(); err != nil || !reflect.DeepEqual(s, whole) {
		t.Errorf("of an older program, without a checksum: %+v, %v", s, err)
	}
}

// What an earlier program sealed keeps its sum, whatever fields a later one adds.
func TestSealedBefore(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	begun := `{"format":1,"commit":"abc","settings":["--seed=1"],"steps":9,"started":"2026-01-02T03:04:05Z","pieces":[
		{"program":"train","started":"0001-01-01T00:00:00Z","cpu_s":0,"wall_s":0,"threads":0,"ended":"exit 0"}],
		"checksum":"fedd4c0742df32f59d24d4c48953d78a8da5c89d5e7d58108c40c6edb8a00667"}`
	measured := `{"format":1,"commit":"abc","settings":["--seed=1"],"steps":9,"machine":"","command":null,"ended":"2026-01-02T03:04:05Z",
		"cpu_s":0,"train_cpu_s":0,"checksum":"8686b1dede0dd2e7fcd7081ce9f2fd7068773bd6bda1cba71c989151b2c6ee2a"}`
	if err := errors.Join(os.MkdirAll(c.Dir(), 0o755), os.WriteFile(c.begunFile(), []byte(begun), 0o644), os.WriteFile(c.measuredFile(), []byte(measured), 0o644)); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Load(); err != nil || s.Begun.Steps != 9 || s.Measured.Steps != 9 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What is written again has the checksum of what it is now, and not of what it was.
func TestSealedAgain(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	b, m := Begun{Steps: 9, Checksum: "old"}, Measured{Values: map[string]float64{"ll": 1. / 3}, Checksum: "old"}
	if err := errors.Join(c.Begin(b), c.Finish(m)); err != nil {
		t.Fatal(err)
	}
	if s, err := c.Load(); err != nil || s.Begun.Steps != 9 || s.Measured.Values["ll"] != 1./3 {
		t.Errorf("%+v, %v", s, err)
	}
}

// What lies in the place of a file, and is none, is damage, too: a report leaves the cell out
// and waits for nobody who is to write into a pipe, and --again does it anew.
func TestOdd(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	if err := c.Begin(Begun{}); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{c.measuredFile(), c.begunFile()} { // in this order: without the latter nobody reads the former
		for want, odd := range map[string]func() error{
			"it is a pipe": func() error { return syscall.Mkfifo(file, 0o644) }, "it is a folder": func() error { return os.Mkdir(file, 0o755) },
		} {
			if err := errors.Join(os.RemoveAll(file), odd()); err != nil {
				t.Fatal(err)
			}
			_, err := c.Load()
			if _, damaged := errors.AsType[*DamagedError](err); !damaged || !strings.HasPrefix(err.Error(), file+" is damaged: "+want+": ") {
				t.Errorf("%v, want that %s is damaged, since %s", err, file, want)
			}
		}
	}
	if err := c.Remove(); err != nil {
		t.Error(err)
	}
}

func TestLock(t *testing.T) {
	root := t.TempDir()
	a, err := Lock(root, "e")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(root, "e"); err == nil || !strings.Contains(err.Error(), "another process is running the experiment in "+filepath.Join(root, "e")) {
		t.Errorf("locked twice: %v", err)
	}
	b, err := Lock(root, "other")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if a, err = Lock(root, "e"); err != nil {
		t.Errorf("after Close: %v", err)
	} else if err := a.Close(); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
