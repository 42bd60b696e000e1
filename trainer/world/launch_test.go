package world

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindLauncher(t *testing.T) {
	t.Setenv("PATH", "")
	dir := t.TempDir()
	self := filepath.Join(dir, "stepbench")
	if _, err := findLauncher("stepbench", self); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("no launcher: %v", err)
	}
	want := filepath.Join(dir, "ddplaunch")
	if err := os.WriteFile(want, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := findLauncher("stepbench", self); got != want || err != nil {
		t.Errorf("found %q, %v; want the one beside", got, err)
	}
}

// What rank 0 has written is printed whatever became of the job, and how the job ended is
// not lost.
func TestLaunch(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, tt := range []struct {
		script string
		code   int
		shown  string
		want   string // in the error; "" for none
	}{
		{`printf %s "$1 $2 $4 $5 $WORD" > "$RESULT_OF_RANK_0"`, 0, "-nproc 2 a b word", ""},
		{`printf half > "$RESULT_OF_RANK_0"; exit 3`, 3, "half", "2 ranks by " + dir + "/ddplaunch"},
		{`:`, 0, "", "result of rank 0"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "ddplaunch"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := Launch(t.Context(), "bench", 2, []string{"a", "b"}, []string{"WORD=word"}, &out, io.Discard)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.script, err, tt.want)
		}
		if failed, is := errors.AsType[*exec.ExitError](err); is != (tt.code > 0) || is && failed.ExitCode() != tt.code {
			t.Errorf("%s: error %v, want the code %d", tt.script, err, tt.code)
		}
		if out.String() != tt.shown {
			t.Errorf("%s: it shows %q, want %q", tt.script, &out, tt.shown)
		}
	}
}

// Ranks that have nothing to print leave alone what rank 0 has written.
func TestOutputOfAll(t *testing.T) {
	file := filepath.Join(t.TempDir(), "result")
	for _, text := range []string{"table", ""} {
		w := Output([]string{outEnv + "=" + file}, io.Discard)
		if _, err := fmt.Fprint(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "table" {
		t.Errorf("the result is %q, %v", b, err)
	}
	var shown strings.Builder
	w := Output(nil, &shown)
	if _, err := fmt.Fprint(w, "table"); err != nil || w.Close() != nil || shown.String() != "table" {
		t.Errorf("without a launcher it shows %q, %v", &shown, err)
	}
}
