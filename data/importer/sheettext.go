package importer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxRowBytes bounds a row of text: a quote that is left open makes one of all that follows.
const maxRowBytes = 16 << 20

// What Header may say of the first row of text.
const (
	HeaderAuto = "auto"
	HeaderYes  = "yes"
	HeaderNo   = "no"
)

// rows reads the rows of a file of text.
type rows struct {
	csv   *csv.Reader
	bytes *boundedRow
	path  string
	line  int  // of the last row
	space bool // fields are apart by any number of spaces
	close func()
}

// openRows opens a file, compressed or not.
func (s *sheet) openRows(ctx context.Context) (*rows, error) {
	f, err := openRegular(ctx, s.path)
	if err != nil {
		return nil, err
	}
	r, err := readRows(f, s.comma, s.path)
	if err != nil {
		_ = f.Close() // it was only read
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	end := r.close
	r.close = func() {
		end()
		_ = f.Close() // it was only read
	}
	return r, nil
}

// readRows reads rows from f. Errors do not name the file.
func readRows(f io.Reader, comma rune, path string) (*rows, error) {
	stream, end, err := expanded(f)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(stream, 1<<18)
	if err := errors.Join(notUTF16(in), noTable(in)); err != nil {
		end()
		return nil, err
	}
	if head, _ := in.Peek(len(mark)); bytes.Equal(head, mark) { // what cannot be read is said where it is
		_, _ = in.Discard(len(mark))
	}
	r := &rows{bytes: &boundedRow{r: in}, path: path, space: comma == ' ', close: end}
	r.csv = csv.NewReader(r.bytes)
	r.csv.Comma, r.csv.FieldsPerRecord, r.csv.ReuseRecord = comma, -1, true
	r.csv.TrimLeadingSpace = comma != '\t' // which is a space
	return r, nil
}

// noTable reports files that are known not to be text by how they begin.
func noTable(in *bufio.Reader) error {
	head, _ := in.Peek(8) // what cannot be read is said where it is
	for _, k := range []struct{ begins, what string }{
		{"PK\x03\x04", "a zip, as .xlsx and .npz files are: save its sheet as CSV, or give the files in it"},
		{"PAR1", "a Parquet file: save it as CSV"}, {"\x89HDF", "an HDF5 file: save its table as CSV, or as .npy"},
		{npyMagic, "an array of NumPy's: give it a name that ends in .npy"},
	} {
		if strings.HasPrefix(string(head), k.begins) {
			return errors.New(k.what)
		}
	}
	return nil
}

// next is the next row, io.EOF after the last. Blank lines are none.
func (r *rows) next() (record, error) {
	fields, err := r.csv.Read()
	r.bytes.begin = r.csv.InputOffset()
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		return record{}, fmt.Errorf("%s: line %d, byte %d: %w: what follows cannot be read", r.path, wrong.Line, wrong.Column, wrong.Err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return record{}, fmt.Errorf("%s: after line %d: %w", r.path, r.line, short(err))
	}
	if err != nil {
		return record{}, io.EOF
	}
	if last := len(fields) - 1; r.space && last > 0 && fields[last] == "" { // of spaces at the end
		fields = fields[:last]
	}
	r.line, _ = r.csv.FieldPos(0)
	return record{path: r.path, number: int64(r.line), fields: fields}, nil
}

// errLongRow ends the reading of a row.
var errLongRow = fmt.Errorf("over the limit of %d bytes for a row: is there a quote that nothing ends?", maxRowBytes)

// boundedRow reads no more than maxRowBytes, and what is read ahead, beyond the begin of a row.
type boundedRow struct {
	r           io.Reader
	begin, read int64
}

func (b *boundedRow) Read(p []byte) (int, error) {
	if b.read-b.begin > maxRowBytes {
		return 0, errLongRow
	}
	n, err := b.r.Read(p)
	b.read += int64(n)
	return n, err
}

// head reads the first rows and says what the columns are called.
func (s *sheet) head(ctx context.Context, header string) error {
	r, err := s.openRows(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	first, err := r.next()
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: empty, expected rows of numbers", s.path)
	}
	if err != nil {
		return err
	}
	first.fields = slices.Clone(first.fields)
	second, err := r.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	s.header = header == HeaderYes || header != HeaderNo && isHeader(first.fields, second.fields)
	if s.header && errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: no rows below its header", s.path)
	}
	if err := s.name(first.fields); err != nil {
		return fmt.Errorf("%s: %w", first.name(), err)
	}
	return nil
}

// isHeader says whether the first row of a file names its columns: where something that is no
// number stands above one. If no column tells, because there is no second row or none of
// numbers, it is one if it has no number.
func isHeader(first, second []string) bool {
	numbers := 0
	for i, text := range first {
		if isNumber(text) {
			numbers++
		} else if i < len(second) && isNumber(second[i]) && !missing[strings.ToLower(strings.TrimSpace(text))] {
			return true
		}
	}
	return numbers == 0
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return err == nil || errors.Is(err, strconv.ErrRange)
}

// name takes the first row, and reports names that say nothing.
func (s *sheet) name(first []string) error {
	if len(first) > mostColumns {
		return tooWide(int64(len(first)))
	}
	if len(first) == 1 {
		for _, other := range ",;\t" {
			if other != s.comma && strings.ContainsRune(first[0], other) {
				return fmt.Errorf("one column, with %q in it: if that stands between columns, say so with --delimiter", string(other))
			}
		}
	}
	s.names = numbered(int64(len(first)))
	if !s.header {
		return nil
	}
	seen := map[string]int{}
	for i, text := range first {
		name := strings.TrimSpace(text)
		if i == 0 {
			name = strings.TrimSpace(strings.TrimPrefix(name, "#")) // of numpy.savetxt
		}
		if name == "" {
			name = unnamed(i)
		}
		if !utf8.ValidString(name) {
			return fmt.Errorf("the name of column %d, %q, is not UTF-8: convert the file, as iconv -f LATIN1 -t UTF-8 does", i, name)
		}
		if j, twice := seen[name]; twice {
			return fmt.Errorf("columns %d and %d are both called %q: give each its own name", j, i, name)
		}
		seen[name], s.names[i] = i, name
	}
	return nil
}

// unnamed is what pandas calls a column without a name, which its indices have.
func unnamed(i int) string { return fmt.Sprintf("Unnamed: %d", i) }

// textRecords are the rows of text below the header.
func (s *sheet) textRecords(ctx context.Context) iter.Seq2[record, error] {
	return sequence(func(give func(record) error) error {
		r, err := s.openRows(ctx)
		if err != nil {
			return err
		}
		defer r.close()
		for first := true; ; first = false {
			rec, err := r.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if first && s.header {
				continue
			}
			if err := give(rec); err != nil {
				return err
			}
		}
	})
}
