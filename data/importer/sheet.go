package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// sheet is a file of a table: text, or an array of NumPy's.
type sheet struct {
	path   string
	comma  rune     // between the fields of text; 0 is an array
	header bool     // its first row are the names
	names  []string // of its columns; by their numbers, from 0, without a header
	kind   npy      // of an array
	labels []int64  // of the rows of an array, from a file of their own; nil without
}

// record is a row as it lies in a file. It is valid until the next one.
type record struct {
	path    string
	number  int64     // line from 1, or row of an array from 0
	fields  []string  // of text
	numbers []float64 // of an array
	label   int64     // of an array that has labels
}

// name is for messages.
func (r record) name() string {
	if r.numbers != nil {
		return fmt.Sprintf("%s: row %d", r.path, r.number)
	}
	return fmt.Sprintf("%s: line %d", r.path, r.number)
}

// width is how many values it has.
func (r record) width() int { return len(r.fields) + len(r.numbers) }

// missing are the ways in which programs write that there is no value.
var missing = map[string]bool{"": true, "na": true, "n/a": true, "#n/a": true, "nan": true, "null": true, "none": true, "nil": true, "?": true, ".": true, "-": true}

// value is that of column i, which is called so.
func (r record) value(i int, column string) (float64, error) {
	if r.numbers != nil {
		v := r.numbers[i]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("column %q is %v, expected a finite number", column, v)
		}
		return v, nil
	}
	text := strings.TrimSpace(r.fields[i])
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case missing[strings.ToLower(text)]:
		return 0, fmt.Errorf("column %q has no value, only %q", column, r.fields[i])
	case errors.Is(err, strconv.ErrRange), math.IsInf(v, 0):
		return 0, fmt.Errorf("column %q is %.40q, expected a finite number", column, text)
	case err != nil && number(strings.ReplaceAll(text, ",", "")):
		return 0, fmt.Errorf("column %q is %.40q, expected a number with a point and without commas, as 1234.5: write all so, as sed 's/,/./g' does where commas are decimal and stand for nothing else", column, text)
	case err != nil:
		return 0, fmt.Errorf("column %q is %.40q, expected a number: --leave-out leaves a column out, --label-column makes classes of it", column, text)
	}
	return v, nil
}

// number says whether a text is one.
func number(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// class is what stands in column i, which is called so.
func (r record) class(i int, column string) (string, error) {
	if r.numbers != nil {
		v, err := r.value(i, column)
		return strconv.FormatFloat(v, 'f', -1, 64), err // as text has it: 1000000, not 1e+06
	}
	text := strings.TrimSpace(r.fields[i])
	if missing[strings.ToLower(text)] {
		return "", fmt.Errorf("column %q, of the classes, has no value, only %q", column, r.fields[i])
	}
	return readable(text), nil
}

// openSheet finds out what the columns of a file are called.
func (o TableOptions) openSheet(ctx context.Context, path string) (sheet, error) {
	s := sheet{path: path}
	if bare(path) == ".npy" {
		err := withNPY(ctx, path, s.lies, nil)
		return s, err
	}
	s.comma = cmp.Or(o.Delimiter, ',')
	if ext := bare(path); o.Delimiter == 0 && (ext == ".tsv" || ext == ".tab") {
		s.comma = '\t'
	}
	err := s.head(ctx, o.Header)
	return s, err
}

// bare is the end of a file's name, in lower case, without that of a compression.
func bare(path string) string {
	name := strings.ToLower(filepath.Base(path))
	for _, packed := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, packed)
	}
	return filepath.Ext(name)
}

// lies takes the columns of an array.
func (s *sheet) lies(h npy) error {
	switch {
	case len(h.shape) != 2:
		return fmt.Errorf("the shape %s, expected (N, d), rows of d numbers: reshape it", h.text())
	case h.size() == 0:
		return fmt.Errorf("values of the kind %q, expected numbers of 32 or 64 bits or whole ones: save numpy.float64(x)", h.kind)
	case h.shape[1] > mostColumns:
		return tooWide(h.shape[1])
	}
	s.kind, s.names = h, numbered(h.shape[1])
	return nil
}

// tooWide says that a table has more columns than points have values.
func tooWide(columns int64) error {
	return fmt.Errorf("%d columns, expected at most %d", columns, mostColumns)
}

// numbered are the names of n columns or classes that have only numbers, from 0; nil for none.
func numbered(n int64) (names []string) {
	for i := range n {
		names = append(names, strconv.FormatInt(i, 10))
	}
	return names
}

// records are the rows, in order. An error ends them.
func (s *sheet) records(ctx context.Context) iter.Seq2[record, error] {
	if s.comma == 0 {
		return s.arrayRecords(ctx)
	}
	return s.textRecords(ctx)
}
