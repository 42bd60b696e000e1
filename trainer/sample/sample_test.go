package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
)

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("-run a -n 9 --out=b/c.png --seed 7 --stats running"), io.Discard)
	if err != nil || o.run != "a" || o.n != 9 || o.out != "b/c.png" || o.seed != 7 || o.stats != "running" || o.device != "auto" {
		t.Errorf("got %+v, %v", o, err)
	}
	o, err = parse(strings.Fields("--run a --out b.png --given c --split train --interpolate 5 --step 30"), io.Discard)
	if err != nil || o.n != usualRows || o.given != "c" || o.split != "train" || o.interpolate != 5 || o.of.Step != 30 {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parse(strings.Fields("--run a --out b.png --given c --interpolate 5 --n 2"), io.Discard); err != nil || o.n != 2 || o.split != "test" || o.of.Step != -1 {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, c := range []struct{ args, want string }{
		{"--run a --out b.png --split test", "--split and --interpolate go with --given"},
		{"--run a --out b.png --interpolate 4", "--split and --interpolate go with --given"},
		{"--run a --out b.png --given c --stats batch", "--stats goes without --given"},
		{"--run a --out b.png --given c --interpolate 1", "want --interpolate from 2 to 1024, or 0, got 1"},
		{"--run a --out b.png --given c --interpolate -2", "want --interpolate from 2 to"},
		{"--run a --out b.png --step -5", "want --step of at least 0"},
		{"--run a --out b.png --given c --mirror 3", "--mirror goes with --interpolate"},
		{"--run a --out b.png --given c --interpolate 4 --mirror 2000", "want --mirror from 0 to 1000, got 2000"},
		{"--run a --out b.png --given c --interpolate 4 --mirror -1", "want --mirror from 0 to 1000, got -1"},
		{"--out a.png", "--run is required"},
		{"--run a", "--out is required"},
		{"--run a --out b.gif", "--out b.gif: want a name that ends in .png"},
		{"--run a --out b.png --n 0", "want --n from 1 to"},
		{"--run a --out b.png --n 2000000", "want --n from 1 to"},
		{"--run a --out b.png --scale -1", "want --scale from 0 to 64"},
		{"--run a --out b.png --scale 65", "want --scale from 0 to 64"},
		{"--run a --out b.png --stats mine", `unknown --stats "mine"`},
		{"--run a --out b.png --device tpu", `unknown --device "tpu"`},
		{"--run a --out b.png --threads -2", "want --threads"},
		{"a", `unexpected argument "a"`},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if usage, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.HasPrefix(usage.Error(), c.want) {
			t.Errorf("%s: got %v, want a usage error that begins with %q", c.args, err, c.want)
		}
	}
}

func TestCheckOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file.png"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder.png"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"full.png", "full.txt", "full.csv", "empty.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.TrimPrefix(name, "empty.txt")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ file, want string }{
		{"new.png", ""},
		{"new.txt", ""},
		{"file.png", ""}, // empty, replaced
		{"empty.txt", ""},
		{"full.png", "it is there already, and no PNG, so it is not replaced"},
		{"full.txt", "it is there already: give another name, or replace it with --force"},
		{"full.csv", "it is there already: give another name, or replace it with --force"},
		{"folder.png", "it is a folder"},
		{"none/a.png", "there is no folder"},
		{"file.png/a.png", "is a file, not a folder"},
		{"file.png/b/a.png", "not a directory"},
	} {
		err := checkOut(filepath.Join(dir, c.file), false)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.file, err, c.want)
		}
	}
	for _, name := range []string{"full.png", "full.txt"} {
		if err := checkOut(filepath.Join(dir, name), true); err != nil {
			t.Errorf("%s with --force: %v", name, err)
		}
	}
	if err := checkOut("/proc/a.png", true); err == nil || !strings.Contains(err.Error(), "no file can be made there") {
		t.Errorf("a folder that takes no files: %v", err)
	}
}
