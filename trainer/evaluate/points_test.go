package main

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/importer"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/launch/progressbar"
)

// tableSet makes a data set of a table of text.
func tableSet(t *testing.T, text string, standardize bool) string {
	t.Helper()
	in := t.TempDir()
	path := filepath.Join(in, "a.csv")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := importer.Table(t.Context(), importer.TableOptions{Files: []string{path}, Header: importer.HeaderAuto, Standardize: standardize})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := importer.Run(t.Context(), s, importer.Options{Out: filepath.Join(in, "out")}); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(in, "out")
}

// Points of any program stand beside training points, a floor and what is known to be bad of
// points; what is of pictures alone is named.
func TestComparePoints(t *testing.T) {
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	const data = "gauss:dim=3,radius=5,sd=0.3,train=300,test=200"
	e := &evaluation{backend: backend, threads: 1, show: progressbar.NewPhases(io.Discard), log: slog.New(slog.DiscardHandler)}
	e.o, err = parse(strings.Fields("--samples-from gauss:dim=3,radius=5,sd=0.3,seed=5,train=200 --data "+data+" --samples 200 --feature-cache none --measures frechet,kid,prdc,swd,c2st,neighbours,is,ll"), io.Discard)
	if err == nil {
		err = e.load()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := r.Quality
	if want := []string{setSamples, setFloor, setNoise, setShuffled, setCopies}; !slices.Equal(c.sets(), want) || c.Networks != 0 || len(c.Rows) != 10 {
		t.Errorf("sets %v, want %v, %d rows, %d networks", c.sets(), want, len(c.Rows), c.Networks)
	}
	for _, name := range []string{"frechet", "swd", "c2st-auc", "coverage"} {
		row := c.row(name)
		for _, bad := range []string{setNoise, setShuffled} {
			if name != "frechet" && (slices.Contains(row.Blind, bad) || slices.Contains(row.unseen(), bad)) { // moments of a ring are those of noise
				t.Errorf("%s does not see %s: %+v, floor %v", name, bad, row, *row.Floor)
			}
		}
	}
	var table strings.Builder
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"beside 300 points of gauss", "nearest training point", "not told from real points", "--measures is of gauss:dim=3,radius=5,sd=0.3,seed=5,train=200: it is of pictures, and its samples are points", "--measures ll of"} {
		if !strings.Contains(table.String(), want) || strings.Contains(strings.ReplaceAll(table.String(), "it is of pictures", ""), "picture") {
			t.Errorf("the table lacks %q, or speaks of pictures:\n%s", want, &table)
		}
	}
	e.o.classifier = "file"
	if err := e.openClassifier(); err == nil || !strings.HasPrefix(err.Error(), "--classifier is a network for pictures, and gauss") {
		t.Errorf("a classifier: %v", err)
	}
}

// Rows that are scaled otherwise than the data are not judged beside them.
func TestCompareTables(t *testing.T) {
	const text = "a,b\n1,2\n3,6\n"
	mine := tableSet(t, text, true)
	for theirs, want := range map[string]string{
		mine: "", "gauss:train=9": "",
		tableSet(t, text, false):          "whose columns, or their scale, are others than those of --data",
		tableSet(t, "a,b,c\n1,2,3", true): " holds 1×1×3 F32, and --data " + mine + " points of 1×1×2",
	} {
		e := &evaluation{o: options{samplesFrom: theirs, data: mine, split: "train"}}
		if err := e.load(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.open(theirs, "train"); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", theirs, err, want)
		}
	}
}

// Notes on points speak of points, and leave names of files what they are.
func TestNotesOnPoints(t *testing.T) {
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	made := tableSet(t, "1,2\n"+strings.Repeat("3,4\n5,7\n", 20), true)
	data := filepath.Join(filepath.Dir(made), "pictures")
	if err := os.Rename(made, data); err != nil {
		t.Fatal(err)
	}
	e := &evaluation{backend: backend, threads: 1, show: progressbar.NewPhases(io.Discard), log: slog.New(slog.DiscardHandler)}
	e.o, err = parse(strings.Fields("--samples-from "+data+" --data "+data+" --split train --samples 100 --feature-cache none --measures kid"), io.Discard)
	if err == nil {
		err = e.load()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"sets hold 41 points in place of 100 (--samples), since that is how many training points there are to compare with",
		"there is no set of one class: " + data + " has no classes",
	}
	for _, note := range want {
		if !slices.Contains(r.Quality.Notes, note) {
			t.Errorf("notes %q, want %q", r.Quality.Notes, note)
		}
	}
}
