package importer

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// endless is a row that nothing ends, or for long; or rows of a megabyte.
type endless struct {
	read int64
	rows bool
}

func (e *endless) Read(p []byte) (int, error) {
	if e.read > 4*maxRowBytes {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = '"'
		if e.read+int64(i) > 0 {
			p[i] = 'x'
		}
		if e.rows && (e.read+int64(i))%(1<<20) == 0 {
			p[i] = '\n'
		}
	}
	e.read += int64(len(p))
	return len(p), nil
}

// A row is not read into memory for ever: here a quote is left open. Of rows that end there may
// be any number.
func TestTableLongRow(t *testing.T) {
	var e endless
	r, err := readRows(&e, ',', "a.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if _, err = r.next(); !errors.Is(err, errLongRow) || !strings.Contains(err.Error(), "a.csv: after line 0: over the limit of 16777216 bytes for a row: is there a quote") || e.read > maxRowBytes+1<<20 {
		t.Errorf("%v after %d bytes", err, e.read)
	}
	many, err := readRows(&endless{rows: true}, ',', "a.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer many.close()
	n := 0
	for ; err == nil; n++ {
		_, err = many.next()
	}
	if want := 4 * maxRowBytes >> 20; n < want || !errors.Is(err, io.EOF) {
		t.Errorf("%v after %d rows of a megabyte, want %d", err, n, want)
	}
}

// Classes that are numbers are in their order, before others; an array has no others, and they
// are called as in text.
func TestTableClasses(t *testing.T) {
	for name, tt := range map[string]struct {
		body   []byte
		want   []string
		labels []int64
	}{
		"a.csv": {[]byte("b,1\n10,2\na,3\n9.0,4\n-1,5\n9,6\n"), []string{"-1", "9", "9.0", "10", "a", "b"}, []int64{5, 3, 4, 2, 0, 1}},
		"a.npy": {npyFile("<f8", "(4, 2)", doubles(10, 1, 0.5, 2, 1e6, 3, 10, 4)), []string{"0.5", "10", "1000000"}, []int64{1, 0, 2, 1}},
	} {
		path := put(t, filepath.Join(t.TempDir(), name), tt.body)
		s, err := Table(t.Context(), TableOptions{Files: []string{path}, Header: HeaderNo, Label: "0"})
		dir, _ := imported(t, s, err, Options{})
		if schema, b := load(t, dir, "train"); !slices.Equal(schema.Classes, tt.want) || !slices.Equal(b.Labels, tt.labels) {
			t.Errorf("%s: %q, labels %v; want %q, %v", name, schema.Classes, b.Labels, tt.want, tt.labels)
		}
	}
}

// FuzzTable reads any text.
func FuzzTable(f *testing.F) {
	for _, text := range []string{measured, "1;2\n", "\"a\nb\",c\r\n1, 2\n", "\xff\xfe1", "a,b\n1,\"2\n3,4\n", "\x1f\x8b\x08", ",,\n"} {
		f.Add([]byte(text), ',')
		f.Add([]byte(text), ' ')
	}
	f.Fuzz(func(t *testing.T, b []byte, comma rune) {
		if (TableOptions{Files: []string{"a"}, Header: HeaderAuto, Delimiter: comma}).Validate() != nil || comma == 0 {
			return
		}
		r, err := readRows(strings.NewReader(string(b)), comma, "a.csv")
		if err != nil {
			return
		}
		defer r.close()
		for line := int64(0); ; {
			rec, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !strings.HasPrefix(err.Error(), "a.csv: ") {
					t.Errorf("error %v names no file", err)
				}
				return
			}
			if rec.width() < 1 || rec.number <= line {
				t.Fatalf("row %v after line %d", rec, line)
			}
			line = rec.number
			for i := range rec.fields {
				if v, err := rec.value(i, "x"); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
					t.Errorf("%q is %v", rec.fields[i], v)
				}
			}
		}
	})
}
