package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/trainer/run/rundir"
)

// TestMissingLines: a run that goes on says which lines its metrics have lost, and takes
// none for lost that --log-every left out, whenever that was changed.
func TestMissingLines(t *testing.T) {
	out := filepath.Join(t.TempDir(), "a")
	if _, _, err := small(t, out, "--steps", "4"); err != nil {
		t.Fatal(err)
	}
	goOn := func(args string) string {
		t.Helper()
		var o, e strings.Builder
		if err := run(t.Context(), strings.Fields("--resume --out "+out+" "+args), nil, &o, &e); err != nil {
			t.Fatalf("%s: %v, %s", args, err, &e)
		}
		if strings.Contains(o.String(), "warning") {
			t.Errorf("%s: a warning among the results:\n%s", args, &o)
		}
		return e.String()
	}
	for _, args := range []string{"--steps 9 --log_every=3", "--steps 10", "--steps 12 -log-every 1", "--steps 14"} {
		if said := goOn(args); strings.Contains(said, "warning") {
			t.Errorf("%s: a warning where nothing is missing:\n%s", args, said)
		}
	}
	// Lines there are now of 0 to 3, of 6 and 9, and of 10 to 13.
	file := filepath.Join(out, "metrics.jsonl")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.WriteFile(file, []byte(strings.Join(append(lines[:4:4], lines[6:]...), "")), 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("train: warning: lines of metrics are lost, and the run goes on without them: file %s, lines 8 of 10, steps done 14, first missing step 6\n", file)
	if said := goOn("--steps 15"); strings.Count(said, want) != 1 {
		t.Errorf("want %q in:\n%s", want, said)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := goOn("--steps 16"); !strings.Contains(said, "lines 0 of 11, steps done 15, first missing step 0\n") {
		t.Errorf("no warning that all is missing:\n%s", said)
	}
}

// A run that begins with another's weights has its --log-every, too, which nobody need have
// typed: what it left out is not lost.
func TestMissingLinesOfAnothersFlags(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	if _, _, err := small(t, first, "--log-every", "3"); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"--from " + first + " --steps 8", "--resume --log-every 3 --steps 12", "--resume --log-every 1 --steps 14", "--resume --steps 15"} {
		var e strings.Builder
		if err := run(t.Context(), strings.Fields(args+" --out "+second), nil, io.Discard, &e); err != nil {
			t.Fatalf("%s: %v, %s", args, err, &e)
		}
		if strings.Contains(e.String(), "lost") {
			t.Errorf("%s: a warning where nothing is missing:\n%s", args, &e)
		}
	}
}

// Where the command lines do not add up to what the last start did, nobody knows which
// lines are due, and none is said to be missing.
func TestLoggedByUnknown(t *testing.T) {
	for every, want := range map[string]bool{"5": false, "1": true} {
		if got := loggedBy(rundir.Config{Flags: map[string]string{"log-every": every}}).due(0); got != want {
			t.Errorf("a run with --log-every %s that nobody typed: step 0 is due: %v, want %v", every, got, want)
		}
	}
}
