package importer

import (
	"bytes"
	"fmt"
	"image/color"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/shard"
	"ebtrain/data/synth"
)

func TestFolder(t *testing.T) {
	grey := func(v int) []byte { return pngOf(t, plain(4, 4, color.Gray{uint8(v)})) }
	tests := []struct {
		name    string
		files   map[string]int // grey level
		percent int
		want    map[string][]int // by split, sorted
		classes []string
	}{
		{"flat", map[string]int{"a.png": 1, "b.PNG": 2}, 0, map[string][]int{"train": {1, 2}}, nil},
		{"classes", map[string]int{"cat/deep/a.png": 1, "dog/b.png": 2}, 0, map[string][]int{"train": {1, 2}}, []string{"cat", "dog"}},
		{"splits", map[string]int{"top/train/x/a.png": 1, "top/train/y/b.png": 2, "top/valid/x/c.png": 3, "top/test/y/d.png": 4}, 0,
			map[string][]int{"train": {1, 2}, "val": {3}, "test": {4}}, []string{"x", "y"}},
		{"one folder", map[string]int{"x/a.png": 1, "x/b.png": 2}, 0, map[string][]int{"train": {1, 2}}, nil},
		{"classes in a folder", map[string]int{"top/cat/a.png": 1, "top/dog/b.png": 2}, 0, map[string][]int{"train": {1, 2}}, []string{"cat", "dog"}},
		{"classes in two", map[string]int{"a/b/cat/a.png": 1, "a/b/dog/b.png": 2, "a/b/c.png": 3}, 0, map[string][]int{"train": {1, 2, 3}}, []string{".", "cat", "dog"}},
		{"splits in two", map[string]int{"a/top/train/x/a.png": 1, "a/top/train/y/b.png": 2, "a/top/test/y/d.png": 4}, 0,
			map[string][]int{"train": {1, 2}, "test": {4}}, []string{"x", "y"}},
		{"a folder beside a picture", map[string]int{"top/cat/a.png": 1, "top/dog/b.png": 2, "c.png": 3}, 0, map[string][]int{"train": {1, 2, 3}}, []string{".", "top"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			var entries []file
			for name, v := range tt.files {
				put(t, filepath.Join(dir, name), grey(v))
				entries = append(entries, file{name, grey(v)})
			}
			put(t, filepath.Join(dir, "notes.txt"), nil)
			for _, src := range []string{dir, put(t, filepath.Join(t.TempDir(), "a.zip"), zipOf(t, entries...))} {
				if src == dir && strings.HasPrefix(tt.name, "splits") {
					continue // notes.txt is beside the top folder, pictures are not
				}
				s, err := Folder(t.Context(), src, Geometry{}, tt.percent)
				out, x := imported(t, s, err, Options{})
				if len(x.Splits) != len(tt.want) || !slices.Equal(s.Schema.Classes, tt.classes) {
					t.Fatalf("splits %v, classes %v", x.Splits, s.Schema.Classes)
				}
				for split, want := range tt.want {
					_, b := load(t, out, split)
					var got []int
					for i := range b.Labels {
						got = append(got, int(b.Values[48*i]))
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("%s: %v, want %v", split, got, want)
					}
				}
			}
		})
	}
}

func TestFolderTestPercent(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		put(t, filepath.Join(dir, fmt.Sprintf("%c/%02d.png", 'a'+i%2, i)), pngOf(t, plain(2, 2, color.Gray{uint8(i)})))
	}
	s, err := Folder(t.Context(), dir, Geometry{}, 25)
	out, _ := imported(t, s, err, Options{})
	seen := map[byte]bool{}
	for split, n := range map[string]int{"train": 30, "test": 10} {
		_, b := load(t, out, split)
		if len(b.Labels) != n {
			t.Errorf("%s has %d, want %d", split, len(b.Labels), n)
		}
		for i, l := range b.Labels {
			v := b.Values[12*i]
			if seen[v] || l != int64(v%2) {
				t.Errorf("%s: picture %d twice or with label %d", split, v, l)
			}
			seen[v] = true
		}
	}
}

func TestCopySynth(t *testing.T) {
	src, err := synth.Open(synth.Config{Size: 8, Test: 70}, "test")
	if err != nil {
		t.Fatal(err)
	}
	out, x := imported(t, Copy([]Named{{"test", src}}), nil, Options{})
	_, got := load(t, out, "test")
	var values []byte
	var labels []int64
	for i := range src.Layout().Spans() {
		var b data.Block
		if err := src.ReadBlock(i, &b); err != nil {
			t.Fatal(err)
		}
		values, labels = append(values, b.Values...), append(labels, b.Labels...)
	}
	if !bytes.Equal(got.Values, values) || !slices.Equal(got.Labels, labels) || len(labels) != 70 {
		t.Errorf("%d samples, labels %v, want %v, or other pixels", len(got.Labels), got.Labels, labels)
	}
	if slices.Max(labels) < 1 {
		t.Error("all labels are 0: the test does not see them")
	}
	if got, want := x.Preprocessing["copy of test"], src.Digest(); got != want {
		t.Errorf("copied from %q, want the digest %q", got, want)
	}
}

// Damaged pictures are named and counted, and the rest keeps its order.
func TestSkipBad(t *testing.T) {
	dir := t.TempDir()
	batch := cifarFile(300)
	batch[17*cifarRecord] = 77
	put(t, filepath.Join(dir, "data_batch_1.bin"), append(batch, 1, 2, 3))
	s, err := CIFAR10(t.Context(), []string{dir}, Geometry{})
	var told []shard.Skipped
	var last int64
	out, x := imported(t, s, err, Options{SkipBad: true, Workers: 7, Bad: func(b shard.Skipped) { told = append(told, b) },
		Progress: func(split string, done, total int64) {
			if split != "train" || done != last+1 || total != 301 {
				t.Errorf("progress %s %d of %d after %d", split, done, total, last)
			}
			last = done
		}})
	if len(x.Skipped) != 2 || !reflect.DeepEqual(told, x.Skipped) || last != 301 {
		t.Fatalf("skipped %+v, told %+v", x.Skipped, told)
	}
	if n := x.Skipped[0].Name; !strings.HasSuffix(n, fmt.Sprintf("record 17 at offset %d", 17*cifarRecord)) {
		t.Errorf("skipped %q", n)
	}
	for _, s := range x.Skipped {
		if s.Split != "train" || s.Why == "" {
			t.Errorf("skipped %+v: of which split, and why?", s)
		}
	}
	_, b := load(t, out, "train")
	if len(b.Labels) != 299 || b.Values[17*cifarPixels] != 18 || b.Values[298*cifarPixels] != 299%256 {
		t.Errorf("%d samples, or out of order", len(b.Labels))
	}
}

func TestLimit(t *testing.T) {
	s, err := MNIST(t.Context(), mnistDir(t, 9), Geometry{})
	_, x := imported(t, s, err, Options{Limit: 4})
	if x.Splits["train"].Samples != 4 || x.Splits["test"].Samples != 4 {
		t.Errorf("splits %+v", x.Splits)
	}
}

func TestResultDoesNotDependOnWorkers(t *testing.T) {
	dir := t.TempDir()
	for i := range 50 {
		put(t, filepath.Join(dir, fmt.Sprintf("%02d.jpg", i)), jpegOf(t, plain(20+i%3, 30, color.Gray{uint8(5 * i)})))
	}
	var sums []string
	for _, workers := range []int{1, 3, 2 * runtime.GOMAXPROCS(0)} {
		s, err := Folder(t.Context(), dir, Geometry{Size: data.Square(16)}, 0)
		_, x := imported(t, s, err, Options{Workers: workers})
		sums = append(sums, x.Splits["train"].Shards[0].XXH64)
	}
	if sums[0] != sums[1] || sums[0] != sums[2] {
		t.Errorf("checksums %v differ", sums)
	}
}

// All splits of a WebDataset have classes, or none.
func TestWebDatasetSplitsAgreeOnClasses(t *testing.T) {
	picture := pngOf(t, plain(4, 4, color.White))
	labelled := tarOf(t, file{"000.png", picture}, file{"000.cls", []byte("1")})
	for name, bodies := range map[string][2][]byte{"train": {labelled, tarOf(t, file{"abc.png", picture})}, "test": {tarOf(t, file{"abc.png", picture}), labelled}} {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "train.tar"), bodies[0])
		put(t, filepath.Join(dir, "test.tar"), bodies[1])
		_, err := WebDataset(t.Context(), []string{dir}, Geometry{})
		if err == nil || !strings.Contains(err.Error(), ".tar: some samples have a .cls and ") || !strings.Contains(err.Error(), "differs, expected all or none") {
			t.Errorf("classes in %s alone: %v", name, err)
		}
	}
}

// Samples of a WebDataset that say nothing, or too much, are named.
func TestWebDatasetBad(t *testing.T) {
	picture := file{"set/0.png", dot(t)}
	for want, files := range map[string][]file{
		`a.tar: set/0: class "cat", expected a number`:                           {picture, {"set/0.cls", []byte("cat\n")}},
		`a.tar: set/0: class "-1", expected a number`:                            {picture, {"set/0.cls", []byte("-1")}},
		"a class number of 1048576, expected at most 1048575":                    {picture, {"set/0.cls", []byte("1048576")}},
		"a.tar: set/1: a sample without a picture, expected .jpg, .jpeg or .png": {picture, {"set/0.cls", []byte("0")}, {"set/1.cls", []byte("0")}},
	} {
		s, err := WebDataset(t.Context(), []string{put(t, filepath.Join(t.TempDir(), "a.tar"), tarOf(t, files...))}, Geometry{})
		if err == nil {
			_, err = Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// Top folders decide what the splits are; a picture beside them does not undo it.
func TestFolderPicturesOutsideSplits(t *testing.T) {
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{[]string{"train/x/a.png", "test/x/b.png", "cover.png"}, "cover.png lies outside the folders of the splits (test, train)"},
		{[]string{"top/train/a.png", "top/Valid/b.png", "top/z.png", "top/y.png"}, "top/y.png and 1 more lie outside the folders of the splits (top/Valid, top/train)"},
		{[]string{"top/train/a.png", "top/test/b.png", "cover.png"}, "cover.png lies outside the folders of the splits (top/test, top/train)"},
		{[]string{"train/a.png", "extra/b.png", "c.png"}, ""},
		{[]string{"x/a.png", "c.png"}, ""},
	} {
		dir := t.TempDir()
		for _, name := range tt.files {
			put(t, filepath.Join(dir, name), dot(t))
		}
		s, err := Folder(t.Context(), dir, Geometry{}, 0)
		if tt.want == "" {
			if err != nil || len(s.Splits) != 1 {
				t.Errorf("%v: %v, want the split train alone", tt.files, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%v: %v, want %q", tt.files, err, tt.want)
		}
	}
}
