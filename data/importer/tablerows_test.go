package importer

import (
	"errors"
	"io"
	"math"
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

// Classes that are numbers are in their order, before others.
func TestByNumber(t *testing.T) {
	classes := []string{"b", "10", "a", "9.0", "-1", "9"}
	slices.SortFunc(classes, byNumber)
	if want := []string{"-1", "9", "9.0", "10", "a", "b"}; !slices.Equal(classes, want) {
		t.Errorf("%q, want %q", classes, want)
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
