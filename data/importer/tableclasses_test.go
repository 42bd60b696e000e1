package importer

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
)

// Rows of arrays have the classes of the arrays beside them, in whatever split they are.
func TestTableLabels(t *testing.T) {
	in := t.TempDir()
	rows, classes := make([]float64, 0, 80), make([]byte, 0, 40)
	for i := range 40 {
		rows, classes = append(rows, float64(i), float64(-i)), append(classes, byte(2*(i%3)))
	}
	x := put(t, filepath.Join(in, "x.npy"), npyFile("<f8", "(40, 2)", doubles(rows...)))
	y := put(t, filepath.Join(in, "y.npy"), npyFile("|u1", "(40, 1)", classes))
	xTest := put(t, filepath.Join(in, "x_test.npy"), npyFile("<f8", "(2, 2)", doubles(4, -4, 5, -5)))
	yTest := put(t, filepath.Join(in, "y_test.npy"), npyFile("<i4", "(2,)", []byte{2, 0, 0, 0, 4, 0, 0, 0}))
	s, err := Table(t.Context(), TableOptions{Files: []string{x, xTest}, Labels: []string{y, yTest}, Header: HeaderAuto, ValPercent: 25})
	dir, index := imported(t, s, err, Options{})
	for split, n := range map[string]int{"train": 30, "val": 10, "test": 2} {
		schema, b := load(t, dir, split)
		if len(b.Labels) != n || !slices.Equal(schema.Classes, []string{"0", "2", "4"}) {
			t.Fatalf("%s: %d rows of classes %v, want %d", split, len(b.Labels), schema.Classes, n)
		}
		for i, v := range numbersOf(b) {
			if row := i / 2; i%2 == 0 && b.Labels[row] != int64(v)%3 {
				t.Errorf("%s: row %d, %v, is of class %d", split, row, v, b.Labels[row])
			}
		}
	}
	if index.Preprocessing["classes"] != "given" || !strings.HasSuffix(s.Notes[0], "classes those of "+y) {
		t.Errorf("%v, %q", index.Preprocessing, s.Notes)
	}
	later, err := Table(t.Context(), TableOptions{Files: []string{xTest}, Labels: []string{yTest}, Header: HeaderAuto, Like: &s.Schema})
	dir, _ = imported(t, later, err, Options{})
	if _, b := load(t, dir, "test"); !slices.Equal(b.Labels, []int64{1, 2}) {
		t.Errorf("further rows are of classes %v", b.Labels)
	}
	put(t, yTest, npyFile("|u1", "(2,)", []byte{2, 3}))
	later, err = Table(t.Context(), TableOptions{Files: []string{xTest}, Labels: []string{yTest}, Header: HeaderAuto, Like: &s.Schema})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), later, Options{Out: filepath.Join(in, "out")}); err == nil || !strings.HasPrefix(err.Error(), xTest+`: row 1: its label is the class "3", which is none of those that are known`) {
		t.Errorf("error %v", err)
	}
}

func TestTableLabelsBad(t *testing.T) {
	in := t.TempDir()
	x := put(t, filepath.Join(in, "x.npy"), npyFile("<f8", "(2, 1)", doubles(1, 2)))
	text := put(t, filepath.Join(in, "x.csv"), []byte("1\n2\n"))
	y := put(t, filepath.Join(in, "y.npy"), npyFile("|u1", "(2,)", []byte{0, 1}))
	more := put(t, filepath.Join(in, "more.npy"), npyFile("|u1", "(3,)", []byte{0, 1, 1}))
	for want, o := range map[string]TableOptions{
		"--labels and --label-column both say the classes: leave one of them out":                 {Files: []string{x}, Labels: []string{y}, Label: "0"},
		"1 arrays of labels and 2 of rows, expected one for each, in the same order, or none":     {Files: []string{x, x}, Labels: []string{y}},
		"--labels is of no use: those of --like have no classes":                                  {Files: []string{x}, Labels: []string{y}, Like: &data.Schema{}},
		text + ": text, expected an array of NumPy's beside --labels: the classes of text are a":  {Files: []string{text}, Labels: []string{y}},
		more + ": the shape (3,), expected (2,): " + x + " has so many samples":                   {Files: []string{x}, Labels: []string{more}},
		x + `: values of the kind "<f8", expected whole numbers, the class of each sample: save `: {Files: []string{x}, Labels: []string{x}},
	} {
		o.Header = HeaderAuto
		if _, err := Table(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// seen are the phases of what is read before an import, and how far each came of how much.
type seen struct {
	phases      []string
	done, total []int64
}

func (s *seen) progress(phase string, done, total int64) {
	if n := len(s.phases); n == 0 || s.phases[n-1] != phase {
		s.phases, s.done, s.total = append(s.phases, phase), append(s.done, 0), append(s.total, total)
	}
	n := len(s.phases) - 1
	if s.done[n]++; s.done[n] != done || s.total[n] != total {
		s.phases[n] += " out of order"
	}
}

// is reports other phases than are wanted.
func (s *seen) is(t *testing.T, what string, phases []string, done, total []int64) {
	t.Helper()
	if !slices.Equal(s.phases, phases) || !slices.Equal(s.done, done) || !slices.Equal(s.total, total) {
		t.Errorf("%s: %v, %v of %v, want %v, %v of %v", what, s.phases, s.done, s.total, phases, done, total)
	}
}

// What is read before the samples are written is told of, each time that it is read.
func TestProgressBefore(t *testing.T) {
	in := t.TempDir()
	text := put(t, filepath.Join(in, "x.csv"), []byte(countedRows(20)))
	array := put(t, filepath.Join(in, "x.npy"), npyFile("<f8", "(3, 1)", doubles(1, 2, 3)))
	for _, tt := range []struct {
		o           TableOptions
		done, total []int64
	}{
		{TableOptions{Files: []string{text}, TestPercent: 10}, []int64{20, 18}, []int64{-1, 18}},
		{TableOptions{Files: []string{array}}, []int64{3, 3}, []int64{3, 3}},
		{TableOptions{Files: []string{array}, Limit: 2}, []int64{3, 2}, []int64{3, 2}},
	} {
		var s seen
		tt.o.Header, tt.o.Standardize, tt.o.Progress = HeaderAuto, true, s.progress
		if _, err := Table(t.Context(), tt.o); err != nil {
			t.Fatal(err)
		}
		s.is(t, tt.o.Files[0], []string{"count", "scale"}, tt.done, tt.total)
	}
	sentences := put(t, filepath.Join(in, "s.txt"), []byte("a b\na b\na b a\nb a\n"))
	val := put(t, filepath.Join(in, "v.txt"), []byte("a b\n"))
	var s seen
	if _, err := Text(t.Context(), TextFiles{Src: []string{sentences}, Val: val, Test: "1", Buckets: 1, Progress: s.progress}, Words{MinCount: 1, MaxLength: 9}); err != nil {
		t.Fatal(err)
	}
	s.is(t, sentences, []string{"count", "count val", "words"}, []int64{4, 1, 5}, []int64{-1, -1, 5})
}
