package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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

// A full disk is named with the file and what to do.
func TestUnwritten(t *testing.T) {
	err := unwritten(fmt.Errorf("tensors: %w", &fs.PathError{Op: "write", Path: "c.safetensors", Err: syscall.ENOSPC}))
	if want := "c.safetensors: no space left on device: the disk is full: make room there, or give another file"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want …%s", err, want)
	}
}
