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

// A byte of measured.json that flips changes nothing, or is damage: never another number.
func TestFlippedBytes(t *testing.T) {
	c := Cell{Root: t.TempDir(), Experiment: "e", Row: "r", Seed: 1}
	m := Measured{Commit: "abc", Steps: 9, Machine: "a & b", Ended: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), CPU: 1.25, Values: map[string]float64{"ll": 1.0 / 3},
		Curves: map[string][]measure.Point{"ll": {{X: 1, Y: 2}}}, Notes: []string{"n"}, Quality: struct{ Z, A int }{1, 2}}
	if err := errors.Join(c.Begin(Begun{}), c.Finish(m)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.measuredFile())
	whole, failed := c.Load()
	if err := errors.Join(err, failed); err != nil || whole.Measured.Values["ll"] != 1.0/3 || whole.Measured.Checksum != "" {
		t.Fatalf("%+v, %v", whole.Measured, err)
	}
	for i := range text {
		for _, bit := range []byte{1, 4, 32} {
			flipped := slices.Clone(text)
			flipped[i] ^= bit
			if err := os.WriteFile(c.measuredFile(), flipped, 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := c.Load()
			if err == nil && !reflect.DeepEqual(s.Measured, whole.Measured) || err != nil && s.Measured != nil {
				t.Errorf("byte %d, %q as %q, gives %+v, %v", i, text[i], flipped[i], s.Measured, err)
			}
		}
	}
	old := strings.Split(string(text), ",\n  \"checksum\"")
	if err := os.WriteFile(c.measuredFile(), []byte(old[0]+"\n}"), 0o644); err != nil || len(old) != 2 {
		t.Fatal(old, err)
	}
	if s, err := c.Load(); err != nil || !reflect.DeepEqual(s.Measured, whole.Measured) {
		t.Errorf("of an older program, without a checksum: %+v, %v", s.Measured, err)
	}
}

// What is written again has the checksum of what it is now.
func TestSealedAgain(t *testing.T) {
	m := Measured{Values: map[string]float64{"ll": 1. / 3}}
	if err := m.seal(); err != nil {
		t.Fatal(err)
	}
	first := m.Checksum
	if err := m.seal(); err != nil || m.Checksum != first || first == "" {
		t.Errorf("%q, and again %q, %v", first, m.Checksum, err)
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
