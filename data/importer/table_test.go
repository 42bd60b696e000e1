package importer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/shard"
)

// measured is a table whose columns have other scales, with classes.
const measured = "length,height,kind\n1,1000.5,b\n2,1002.5,a\n6,1003,b\n"

// numbersOf are the values of samples, (n, d).
func numbersOf(b data.Block) (x []float32) {
	for at := 0; at < len(b.Values); at += 4 {
		x = append(x, math.Float32frombits(binary.LittleEndian.Uint32(b.Values[at:])))
	}
	return x
}

// doubles are numbers as an array of NumPy's has them.
func doubles(x ...float64) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// However a table is written, the same samples come of it.
func TestTable(t *testing.T) {
	tabs := strings.ReplaceAll(measured, ",", "\t")
	for _, tt := range []struct {
		file string
		body []byte
		o    TableOptions
	}{
		{"a.csv", []byte(measured), TableOptions{Label: "kind"}},
		{"a.csv", []byte("\ufeff" + strings.ReplaceAll(measured, "\n", "\r\n") + "\r\n"), TableOptions{Label: "2"}},
		{"a.tsv", []byte(tabs), TableOptions{Label: "kind"}},
		{"a.tsv.gz", gz(t, []byte(tabs)), TableOptions{Label: "kind"}},
		{"a.csv.zst", zst(t, []byte(measured)), TableOptions{Label: "kind"}},
		{"a.txt", []byte(strings.ReplaceAll(measured, ",", " ;")), TableOptions{Label: "kind", Delimiter: ';'}},
		{"a.dat", []byte(strings.NewReplacer(",", "   ", "\n", "  \n").Replace(measured)), TableOptions{Label: "kind", Delimiter: ' '}},
		{"a.csv", []byte("# " + measured), TableOptions{Label: "kind"}}, // of numpy.savetxt
		{"a.csv", []byte("kind,x,height,length\nb,0,1000.5,1\na,0,\" 1002.5\",2\nb,0,1003,6\n"), TableOptions{Label: "kind", Columns: []string{"length", "2"}}},
		{"a.csv", []byte(",length,height,kind\n0,1,1000.5,b\n1,2,1002.5,a\n2,6,1003,b\n"), TableOptions{Label: "kind", LeaveOut: []string{"0"}}},
	} {
		path := put(t, filepath.Join(t.TempDir(), tt.file), tt.body)
		tt.o.Files, tt.o.Header, tt.o.Standardize = []string{path}, HeaderAuto, true
		s, err := Table(t.Context(), tt.o)
		dir, x := imported(t, s, err, Options{})
		schema, b := load(t, dir, "train")
		want := []data.Column{{Name: "length", Mean: 3, SD: math.Sqrt(14. / 3)}, {Name: "height", Mean: 1002, SD: math.Sqrt(3.5 / 3)}}
		if len(schema.Columns) != 2 || schema.W != 2 || !slices.Equal(schema.Classes, []string{"a", "b"}) || !slices.Equal(b.Labels, []int64{1, 0, 1}) {
			t.Fatalf("%s: %+v, labels %v", tt.file, schema, b.Labels)
		}
		for i, c := range schema.Columns {
			if c.Name != want[i].Name || !(math.Abs(c.Mean-want[i].Mean) <= 1e-12) || !(math.Abs(c.SD-want[i].SD) <= 1e-12) {
				t.Errorf("%s: column %+v, want %+v", tt.file, c, want[i])
			}
		}
		for i, v := range numbersOf(b) {
			raw := []float64{1, 1000.5, 2, 1002.5, 6, 1003}[i]
			c := want[i%2]
			if v != float32((raw-c.Mean)/c.SD) && !(math.Abs(c.Original(v)-raw) <= 1e-6) || c.Text(v) != fmt.Sprint(raw) {
				t.Errorf("%s: value %d is %v, which is %s of %v", tt.file, i, v, c.Text(v), raw)
			}
		}
		done := shard.Preprocessing{"importer": "table", "standardize": "true", "classes": "kind"}
		if note := []string{path + ": a header in its first line; values are length, height (2), classes kind"}; !slices.Equal(s.Notes, note) {
			t.Errorf("%s: notes %q, want %q", tt.file, s.Notes, note)
		}
		if !slices.Equal(x.Schema.Columns, schema.Columns) || !maps.Equal(x.Preprocessing, done) {
			t.Errorf("%s: the index has %+v, %v", tt.file, x.Schema.Columns, x.Preprocessing)
		}
	}
}

// Without scales values are those of the table, from text and from arrays of any numbers.
func TestTableAsItIs(t *testing.T) {
	want := []float32{1, -2.5, 3, 0.25, 5, 6e20}
	single := make([]byte, 0, 24)
	for _, v := range want {
		single = binary.BigEndian.AppendUint32(single, math.Float32bits(v))
	}
	for _, tt := range []struct {
		file string
		body []byte
		want []float32
	}{
		{"a.csv", []byte("1,-2.5\n3,.25\n5,6e20\n"), want},
		{"a.csv", []byte("1\n-2.5\n"), want[:2]},
		{"a.npy", npyFile("<f8", "(3, 2)", doubles(1, -2.5, 3, 0.25, 5, 6e20)), want},
		{"a.npy", npyFile(">f4", "(3, 2)", single), want},
		{"a.npy", npyFile("|i1", "(3, 2)", []byte{1, 255, 3, 4, 5, 128}), []float32{1, -1, 3, 4, 5, -128}},
		{"a.npy", npyFile("<u8", "(1, 2)", []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128}), []float32{1, 1 << 63}},
	} {
		path := put(t, filepath.Join(t.TempDir(), tt.file), tt.body)
		s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderAuto})
		dir, _ := imported(t, s, err, Options{})
		if note := path + ": no header, so columns are called by their numbers from 0; values are 0"; len(s.Notes) != 1 || !strings.HasPrefix(s.Notes[0], note) {
			t.Errorf("%s: notes %q, want %q", tt.file, s.Notes, note)
		}
		schema, b := load(t, dir, "train")
		last := len(schema.Columns) - 1
		if got := numbersOf(b); !slices.Equal(got, tt.want) || b.Labels[0] != -1 || schema.Columns[last] != (data.Column{Name: fmt.Sprint(last), SD: 1}) {
			t.Errorf("%s: %v of %+v, want %v", tt.file, got, schema, tt.want)
		}
	}
}

// counted is a table of n rows that say their numbers.
func countedRows(n int) string {
	var b strings.Builder
	b.WriteString("a,b\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%d\n", i, -i)
	}
	return b.String()
}

// Shares are as large as is said, at random, and rows are in one split each; files are of
// the split that is a word of their names.
func TestTableSplits(t *testing.T) {
	in := t.TempDir()
	a := put(t, filepath.Join(in, "latest.csv"), []byte(countedRows(1000)))
	s, err := Table(t.Context(), TableOptions{Files: []string{a}, Header: HeaderAuto, ValPercent: 5, TestPercent: 20})
	dir, whole := imported(t, s, err, Options{})
	if want := (shard.Preprocessing{"importer": "table", "standardize": "false", "percent of val": "5", "percent of test": "20"}); !maps.Equal(whole.Preprocessing, want) {
		t.Errorf("the index says %v, want %v", whole.Preprocessing, want)
	}
	seen := map[float32]bool{}
	for split, n := range map[string]int{"train": 750, "val": 50, "test": 200} {
		_, b := load(t, dir, split)
		x, mean := numbersOf(b), 0.0
		for i := 0; i < len(x); i += 2 {
			if seen[x[i]] || x[i+1] != -x[i] || i > 0 && x[i] < x[i-2] {
				t.Fatalf("%s: row %v, %v after %v", split, x[i], x[i+1], x[max(0, i-2)])
			}
			seen[x[i]] = true
			mean += float64(x[i]) / float64(n)
		}
		// The mean of n of 0 … 999, five standard errors.
		if len(b.Labels) != n || !(math.Abs(mean-499.5) <= 5*289/math.Sqrt(float64(n))) {
			t.Errorf("%s: %d rows of mean %v, want %d", split, len(b.Labels), mean, n)
		}
	}
	b := put(t, filepath.Join(in, "x_test.csv"), []byte("7,-7\n")) // a part without a header
	if _, err = Table(t.Context(), TableOptions{Files: []string{b, a}, Header: HeaderAuto, ValPercent: 10}); err == nil || !strings.Contains(err.Error(), "latest.csv: the columns a, b (2), expected those of") {
		t.Errorf("a header after none: %v", err)
	}
	if _, err = Table(t.Context(), TableOptions{Files: []string{a, b}, Header: HeaderAuto, TestPercent: 10}); err == nil || !strings.Contains(err.Error(), b+": is the split test by its name, so no 10 percent of other files can be") {
		t.Errorf("shares for a split that has a file: %v", err)
	}
	s, err = Table(t.Context(), TableOptions{Files: []string{a, b}, Header: HeaderAuto, ValPercent: 10})
	dir, x := imported(t, s, err, Options{Limit: 30})
	if _, test := load(t, dir, "test"); !slices.Equal(numbersOf(test), []float32{7, -7}) || x.Splits["train"].Samples != 30 || x.Splits["val"].Samples != 30 {
		t.Errorf("test holds %v, of %+v", numbersOf(test), x.Splits)
	}
}

// Rows that are left out have no part in the scale, nor do those beyond a limit.
func TestTableSkips(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "a.csv"), []byte("a,b,c\n1,2,x\n3,?,y\n100\n9,9,\n5,4,y\n1000,1000,x\n"))
	o := TableOptions{Files: []string{path}, Header: HeaderAuto, Label: "c", Standardize: true, Limit: 5}
	s, err := Table(t.Context(), o)
	dir, x := imported(t, s, err, Options{SkipBad: true, Limit: 5})
	schema, b := load(t, dir, "train")
	if got := numbersOf(b); !slices.Equal(got, []float32{-1, -1, 1, 1}) || !slices.Equal(schema.Classes, []string{"x", "y"}) || schema.Columns[0] != (data.Column{Name: "a", Mean: 3, SD: 2}) {
		t.Errorf("%v of %+v, %v", got, schema.Columns, schema.Classes)
	}
	var why []string
	for _, s := range x.Skipped {
		why = append(why, s.Name+": "+s.Why)
	}
	if want := []string{path + `: line 3: column "b" has no value, only "?"`, path + ": line 4: 1 of 3 fields, which the first row has", path + `: line 5: column "c", of the classes, has no value, only ""`}; !slices.Equal(why, want) {
		t.Errorf("skipped %q, want %q", why, want)
	}
	if _, err := Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")}); err == nil || !strings.Contains(err.Error(), "only \"?\"; mend it, or leave such rows out with --on-bad skip") {
		t.Errorf("error %v", err)
	}
}

// A column of one value becomes 0, and is told of; so its scale is known.
func TestTableConstant(t *testing.T) {
	path := put(t, filepath.Join(t.TempDir(), "a.csv"), []byte("a,b\n0.1,1\n0.1,2\n0.1,4\n"))
	s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderAuto, Standardize: true})
	dir, _ := imported(t, s, err, Options{})
	schema, b := load(t, dir, "train")
	if x := numbersOf(b); x[0] != 0 || x[4] != 0 || schema.Columns[0] != (data.Column{Name: "a", Mean: 0.1, SD: 1}) || schema.Columns[0].Text(0) != "0.1" {
		t.Errorf("%v of %+v", x, schema.Columns)
	}
	if len(s.Notes) != 2 || !strings.Contains(s.Notes[1], "whose density has no bound: a (1)") {
		t.Errorf("notes %q", s.Notes)
	}
}

// Further rows have the columns, the scale and the classes of another data set, wherever
// these stand.
func TestTableLike(t *testing.T) {
	in := t.TempDir()
	path := put(t, filepath.Join(in, "a.csv"), []byte(measured))
	s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderAuto, Label: "kind", Standardize: true})
	if err != nil {
		t.Fatal(err)
	}
	later := put(t, filepath.Join(in, "test.csv"), []byte("height,kind,more,length\n1002,a,?,3\n"))
	for label, want := range map[string]int64{"kind": 0, "": -1} {
		like, err := Table(t.Context(), TableOptions{Files: []string{later}, Header: HeaderAuto, Label: label, Standardize: true, Like: &s.Schema})
		dir, x := imported(t, like, err, Options{})
		schema, b := load(t, dir, "test")
		if x.Preprocessing["scale"] != "given" || x.Preprocessing["standardize"] != "false" || x.Preprocessing["classes"] != label {
			t.Errorf("the index says %v", x.Preprocessing)
		}
		if !slices.Equal(schema.Columns, s.Schema.Columns) || !slices.Equal(numbersOf(b), []float32{0, 0}) || b.Labels[0] != want {
			t.Errorf("%+v: %v, %v", schema, numbersOf(b), b.Labels)
		}
	}
	put(t, later, []byte("kind,height,length\nc,1002,3\n"))
	like, err := Table(t.Context(), TableOptions{Files: []string{later}, Header: HeaderAuto, Label: "kind", Like: &s.Schema})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Run(t.Context(), like, Options{Out: filepath.Join(in, "out")}); err == nil || !strings.Contains(err.Error(), `line 2: column "kind" is the class "c", which is none of those that are known`) {
		t.Errorf("error %v", err)
	}
	put(t, later, []byte("height,width\n1,2\n"))
	if _, err = Table(t.Context(), TableOptions{Files: []string{later}, Header: HeaderAuto, Like: &s.Schema}); err == nil || !strings.Contains(err.Error(), `no column "length", which those of --like have, among height, width (2)`) {
		t.Errorf("error %v", err)
	}
	put(t, later, []byte("kind,height,length\na,1002,3\n"))
	s.Schema.Classes = nil
	if _, err = Table(t.Context(), TableOptions{Files: []string{later}, Header: HeaderAuto, Label: "0", Like: &s.Schema}); err == nil || !strings.Contains(err.Error(), "--label-column kind is of no use: those of --like have no classes") {
		t.Errorf("error %v", err)
	}
}

func TestTableBad(t *testing.T) {
	in := t.TempDir()
	wide := strings.Repeat("1,", mostColumns) + "1\n"
	for _, tt := range []struct {
		name, file, body string
		o                TableOptions
		want             string
	}{
		{"nothing", "a.csv", "", TableOptions{}, ": empty, expected rows of numbers"},
		{"blank", "a.csv", "\n \n", TableOptions{}, ": no rows below its header"},
		{"header alone", "a.csv", "a,b\n", TableOptions{}, ": no rows below its header"},
		{"UTF-16", "a.csv", "\xff\xfe1\x00", TableOptions{}, ": text in UTF-16, expected UTF-8"},
		{"a workbook", "a.csv", "PK\x03\x04...", TableOptions{}, ": a zip, as .xlsx and .npz files are"},
		{"Parquet", "a.csv", "PAR1....", TableOptions{}, ": a Parquet file: save it as CSV"},
		{"an array", "a.csv", string(npyFile("<f8", "(1, 2)", doubles(1, 2))), TableOptions{}, ": an array of NumPy's: give it a name that ends in .npy"},
		{"no number", "a.csv", "a,b\n1,2\n3,four\n", TableOptions{}, `: line 3: column "b" is "four", expected a number: --leave-out leaves a column out`},
		{"decimal commas", "a.csv", "a;b\n1,5;2\n", TableOptions{Delimiter: ';'}, `: line 2: column "a" is "1,5", expected a number with a point and without commas, as 1234.5: write all so, as sed 's/,/./g' does`},
		{"thousands", "a.csv", "a,b\n1,2\n\"1,234.5\",3\n", TableOptions{}, `: line 3: column "a" is "1,234.5", expected a number with a point and without commas`},
		{"first no number", "a.csv", "a,b\nx,2\n", TableOptions{Standardize: true}, `: line 2: column "a" is "x", expected a number: --leave-out leaves a column out, --label-column makes classes of it; no row of the split train can be used`},
		{"missing", "a.csv", "a,b\n1,2\n,4\n", TableOptions{}, `: line 3: column "a" has no value, only ""`},
		{"NaN", "a.csv", "1,nan\n", TableOptions{}, `: line 1: column "1" has no value, only "nan"`},
		{"infinite", "a.csv", "1,-Inf\n", TableOptions{}, `: line 1: column "1" is "-Inf", expected a finite number`},
		{"out of range", "a.csv", "1,1e999\n", TableOptions{}, `: line 1: column "1" is "1e999", expected a finite number`},
		{"too large", "a.csv", "1,1e39\n", TableOptions{}, `: line 1: column "1" is 1e+39, which is too large for a float32`},
		{"too large together", "a.csv", "1,1e308\n1,-1e308\n", TableOptions{Standardize: true}, `column "1" has values too large for their mean and deviation`},
		{"ragged", "a.csv", "a,b\n1,2\n\n\"\n3\"\n", TableOptions{}, ": line 4: 1 of 2 fields, which the first row has"},
		{"more fields", "a.csv", "a,b\n1,2,3\n", TableOptions{}, ": line 2: 3 of 2 fields"},
		{"same names", "a.csv", "a,b,a\n1,2,3\n", TableOptions{}, `: line 1: columns 0 and 2 are both called "a"`},
		{"no name", "a.csv", ",b\n1,2\n", TableOptions{}, ": column 0 has no name, as the numbers of rows that pandas and R write have none: leave it out with --leave-out 0"},
		{"name not UTF-8", "a.csv", "h\xe9,b\n1,2\n", TableOptions{}, `: line 1: the name of column 0, "h\xe9", is not UTF-8`},
		{"another delimiter", "a.csv", "1;2\n3;4\n", TableOptions{}, `: line 1: one column, with ";" in it: if that stands between columns, say so with --delimiter`},
		{"open quote", "a.csv", "a,b\n1,\"2\n3,4\n", TableOptions{}, `: line 3, byte 5: extraneous or missing " in quoted-field: what follows cannot be read`},
		{"stray quote", "a.csv", "a,b\n1,2\"3\"\n", TableOptions{}, `: line 2, byte 4: bare " in non-quoted-field`},
		{"wide", "a.csv", wide, TableOptions{}, ": line 1: 16385 columns, expected at most 16384"},
		{"cut short", "a.csv.gz", string(gz(t, []byte(countedRows(1000)))[:200]), TableOptions{}, "the file ends too soon: it was cut short"},
		{"no such column", "a.csv", "a,b\n1,2\n", TableOptions{Label: "c"}, ": --label-column c: no such column; there are a, b (2), numbered from 0"},
		{"no such number", "a.csv", "a,b\n1,2\n", TableOptions{Label: "2"}, ": --label-column 2: no such column; there are a, b (2), numbered from 0"},
		{"left out", "a.csv", "a,b\n1,2\n", TableOptions{Columns: []string{"a"}, LeaveOut: []string{"a"}}, ": --columns a: that column is named twice, or is left out or one of the classes"},
		{"values of classes", "a.csv", "a,b\n1,2\n", TableOptions{Columns: []string{"a", "b"}, Label: "b"}, ": --columns b: that column is named twice, or is left out or one of the classes"},
		{"twice", "a.csv", "a,b\n1,2\n", TableOptions{Columns: []string{"a", "0"}}, ": --columns 0: that column is named twice"},
		{"none left", "a.csv", "a,b\n1,2\n", TableOptions{LeaveOut: []string{"a"}, Label: "b"}, ": no column is left for values, of a, b (2)"},
		{"few rows", "a.csv", "1,2\n3,4\n", TableOptions{TestPercent: 10}, "--test-percent 10 of the rows, 2 in all, are none for the split test"},
		{"test alone", "a-test.csv", "1,2\n3,4\n", TableOptions{}, ": is the split test by its name, and no file is for training: rename it"},
		{"many classes", "a.csv", countedRows(mostClasses + 1), TableOptions{Label: "a"}, `: line 65538: more than 65536 classes in column "a", expected few: is it one of numbers?`},
		{"no class", "a.csv", "1,x\n3,\n", TableOptions{Label: "1"}, `: line 2: column "1", of the classes, has no value, only ""`},
		{"pictures", "a.npy", string(npyFile("<f8", "(1, 2, 2)", doubles(1, 2, 3, 4))), TableOptions{}, ": the shape (1, 2, 2), expected (N, d), rows of d numbers"},
		{"half", "a.npy", string(npyFile("<f2", "(1, 2)", []byte{0, 0, 0, 0})), TableOptions{}, `: values of the kind "<f2", expected numbers of 32 or 64 bits`},
		{"array cut", "a.npy", string(npyFile("<f8", "(2, 2)", doubles(1, 2, 3))), TableOptions{}, "152 bytes, expected 160 for an array of the shape (2, 2)"},
		{"array of no number", "a.npy", string(npyFile("<f8", "(2, 1)", doubles(1, math.NaN()))), TableOptions{}, `: row 1: column "0" is NaN, expected a finite number`},
		{"array without rows", "a.npy", string(npyFile("<f8", "(0, 2)", nil)), TableOptions{}, "gives the shape (0, 2), expected dimensions of 1 and more"},
	} {
		path := put(t, filepath.Join(in, tt.file), []byte(tt.body))
		tt.o.Files, tt.o.Header = []string{path}, HeaderAuto
		s, err := Table(t.Context(), tt.o)
		if err == nil {
			_, err = Run(t.Context(), s, Options{Out: filepath.Join(in, "out")})
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.HasPrefix(tt.want, ": ") && !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if _, err := os.Stat(filepath.Join(in, "out")); !os.IsNotExist(err) {
			t.Fatalf("%s: a data set is there: %v", tt.name, err)
		}
	}
}

func TestTableOptions(t *testing.T) {
	for want, o := range map[string]TableOptions{
		"no file given": {},
		`--header "maybe", expected auto, yes or no`:             {Files: []string{"a"}, Header: "maybe"},
		`--delimiter '.', expected a character`:                  {Files: []string{"a"}, Header: HeaderNo, Delimiter: '.'},
		`--delimiter '5', expected a character`:                  {Files: []string{"a"}, Header: HeaderNo, Delimiter: '5'},
		`--delimiter 'x', expected a character`:                  {Files: []string{"a"}, Header: HeaderNo, Delimiter: 'x'},
		"--delimiter '\ufffd', expected a character":             {Files: []string{"a"}, Header: HeaderNo, Delimiter: '\ufffd'},
		"--val-percent 60 and --test-percent 40, expected 0 or ": {Files: []string{"a"}, Header: HeaderYes, ValPercent: 60, TestPercent: 40},
		"--val-percent -1 and --test-percent 9, expected 0 or ":  {Files: []string{"a"}, Header: HeaderYes, ValPercent: -1, TestPercent: 9},
		"--val-percent 9 and --test-percent -1, expected 0 or ":  {Files: []string{"a"}, Header: HeaderYes, ValPercent: 9, TestPercent: -1},
		"--val-percent 50 and --test-percent 41, expected 0 or ": {Files: []string{"a"}, Header: HeaderYes, ValPercent: 50, TestPercent: 41},
		"--columns and --leave-out are of no use to --like":      {Files: []string{"a"}, Header: HeaderYes, Columns: []string{"a"}, Like: &data.Schema{}},
	} {
		if _, err := Table(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (TableOptions{Files: []string{"a"}, Header: HeaderNo, Delimiter: ';', ValPercent: 50, TestPercent: 40}).Validate(); err != nil {
		t.Error(err)
	}
}

// Of columns with spaces between them all are there, whether lines end with one or not.
func TestTableOfSpaces(t *testing.T) {
	for _, body := range []string{"1 2\n3 4\n", "1 2 \n3 4 \n", " 1  2\n3 4 \n"} {
		path := put(t, filepath.Join(t.TempDir(), "a.txt"), []byte(body))
		s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderNo, Delimiter: ' '})
		dir, _ := imported(t, s, err, Options{})
		if _, b := load(t, dir, "train"); !slices.Equal(numbersOf(b), []float32{1, 2, 3, 4}) {
			t.Errorf("%q: %v", body, numbersOf(b))
		}
	}
}

// What a first row is, of files without anybody's word.
func TestIsHeader(t *testing.T) {
	for text, want := range map[string]bool{
		"a,b\n1,2": true, "1,2\n3,4": false, "5.1,Iris\n4.9,Iris": false, "x,kind\n4.9,Iris": true, "a,b": true, "1,2": false, "kind\nIris": true,
		"2019,x\n1,2": true, "NA,2\n1,2": false, ",a\n0,1": true, "a,b\n,": true,
	} {
		first, second, _ := strings.Cut(text, "\n")
		if got := isHeader(strings.Split(first, ","), strings.Split(second, ",")); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// A table that changes while it is imported is no data set.
func TestTableChanges(t *testing.T) {
	for body, more := range map[string]string{countedRows(10): countedRows(11), countedRows(20): countedRows(19)} {
		path := put(t, filepath.Join(t.TempDir(), "a.csv"), []byte(body))
		s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderAuto, TestPercent: 10})
		if err != nil {
			t.Fatal(err)
		}
		put(t, path, []byte(more))
		if _, err := Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out"), SkipBad: true}); err == nil || !strings.Contains(err.Error(), path+": other rows than a moment ago") {
			t.Errorf("error %v", err)
		}
	}
}
