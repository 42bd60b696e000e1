package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is no classifier is not lost.
func TestClassifierReplaces(t *testing.T) {
	e := comparingToy(t)
	e.o.trainClassifier = filepath.Join(t.TempDir(), "job.sh")
	const script = "#!/bin/sh\n"
	if err := os.WriteFile(e.o.trainClassifier, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	err := e.trainClassifier(t.Context(), io.Discard)
	if want := "--train-classifier " + e.o.trainClassifier + ": it is there already, and no classifier"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	if text, err := os.ReadFile(e.o.trainClassifier); err != nil || string(text) != script {
		t.Errorf("%v, and the file holds %q", err, text)
	}
}
