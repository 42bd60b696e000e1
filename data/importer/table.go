package importer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"ebtrain/data"
	"ebtrain/data/safetensors"
	"ebtrain/data/shard"
)

// mostColumns is as many values as a sample may have in a row.
const mostColumns = 1 << 14

// TableOptions say how the rows of files become points.
type TableOptions struct {
	Files     []string
	Delimiter rune   // between the fields of text; 0 goes by the files' names
	Header    string // HeaderAuto, HeaderYes or HeaderNo
	// Columns and LeaveOut are names, or numbers from 0, of those that become values, and of
	// those that do not. Without Columns all do.
	Columns, LeaveOut []string
	Label             string // column of the classes; "" for none
	// Labels are arrays of NumPy's of whole numbers, (N) or (N, 1), the classes of the rows
	// of each of Files, which are arrays then; nil for none.
	Labels []string
	// ValPercent and TestPercent are shares of the rows, picked at random.
	ValPercent, TestPercent int
	// Standardize gives each column of the split train the mean 0 and the deviation 1, and
	// the others of that column the same scale.
	Standardize bool
	// Like has the columns, their scale and the classes, in place of what the files say;
	// nil for none.
	Like  *data.Schema
	Limit int64 // of Run: what rows the columns are scaled by; 0 means all
	// Progress, if not nil, is called after each row that is read before Run reads them: as
	// they are counted and, then, as columns are scaled by them; total is −1 if unknown.
	Progress func(phase string, done, total int64)
}

// Validate says what is wrong, as far as no file says it.
func (o TableOptions) Validate() error {
	switch {
	case len(o.Files) == 0:
		return errors.New("no file given")
	case !slices.Contains([]string{HeaderAuto, HeaderYes, HeaderNo}, o.Header):
		return fmt.Errorf("--header %q, expected %s, %s or %s", o.Header, HeaderAuto, HeaderYes, HeaderNo)
	case o.Delimiter != 0 && (strings.ContainsRune("\"\r\n.+-", o.Delimiter) || o.Delimiter == unicode.ReplacementChar || unicode.IsLetter(o.Delimiter) || unicode.IsDigit(o.Delimiter)):
		return fmt.Errorf("--delimiter %q, expected a character that no number has, as \",\" or \";\", or tab, or space", o.Delimiter)
	case o.ValPercent < 0 || o.TestPercent < 0 || o.ValPercent+o.TestPercent > 90:
		return fmt.Errorf("--val-percent %d and --test-percent %d, expected 0 or more, and 90 at most in all", o.ValPercent, o.TestPercent)
	case o.Like != nil && (o.Columns != nil || o.LeaveOut != nil):
		return errors.New("--columns and --leave-out are of no use to --like, whose columns are taken: leave them out")
	}
	return o.checkLabels()
}

// progress says that so many rows are read.
func (o TableOptions) progress(phase string, done, total int64) {
	if o.Progress != nil {
		o.Progress(phase, done, total)
	}
}

// table is files that have the same columns, as samples.
type table struct {
	TableOptions
	sheets  map[string][]sheet // by split
	counts  map[string]int64   // rows by split
	fields  int                // of a row
	picks   []int              // columns that become values
	label   int                // column of the classes, −1 without
	columns []data.Column      // of the values
	classes map[string]int64
}

// Table opens files of rows of numbers, of text (CSV and its like) or arrays of NumPy's
// (.npy, (N, d)), whose rows become points of as many values, F32. The split is test or val
// for files with that word in their name, else train, of which shares may be taken for the
// others. Rows keep their order. However large the files are, little of them is in memory:
// they are read several times.
func Table(ctx context.Context, o TableOptions) (*Set, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	t := &table{TableOptions: o, sheets: map[string][]sheet{}, counts: map[string]int64{}, label: -1}
	first, err := t.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.choose(first); err != nil {
		return nil, fmt.Errorf("%s: %w", first.path, err)
	}
	names, err := t.survey(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.take(); err != nil {
		return nil, err
	}
	s := &Set{Preprocessing: t.preprocessing(), Notes: []string{t.found(first)}}
	if o.Like == nil && o.Standardize {
		note, err := t.standardize(ctx)
		if err != nil {
			return nil, err
		}
		s.Notes = append(s.Notes, note...)
	}
	s.Schema = data.Schema{C: 1, H: 1, W: len(t.columns), DType: safetensors.F32, Classes: names, Columns: t.columns}
	for _, split := range []string{"train", "val", "test"} {
		if t.counts[split] > 0 {
			s.Splits = append(s.Splits, Split{Name: split, Count: t.counts[split], Items: t.items(split)})
		}
	}
	return s, nil
}

// open looks at all files, and gives the first.
func (t *table) open(ctx context.Context) (first sheet, err error) {
	for i, path := range t.Files {
		s, err := t.openSheet(ctx, path)
		if err != nil {
			return first, err
		}
		if err := t.readLabels(ctx, i, &s); err != nil {
			return first, err
		}
		if i == 0 {
			first = s
		}
		if !s.header && len(s.names) == len(first.names) { // as parts of a file that was cut have none
			s.names = first.names
		}
		if !slices.Equal(s.names, first.names) {
			return first, fmt.Errorf("%s: the columns %s, expected those of %s, %s", path, listed(s.names), first.path, listed(first.names))
		}
		split := namedFor(path)
		t.sheets[split] = append(t.sheets[split], s)
	}
	for _, p := range t.shares() {
		if named := t.sheets[p.split]; p.percent > 0 && len(named) > 0 {
			return first, fmt.Errorf("%s: is the split %s by its name, so no %d percent of other files can be", named[0].path, p.split, p.percent)
		}
	}
	if len(t.sheets["train"]) == 0 && t.Like == nil {
		return first, fmt.Errorf("%s: is the split %s by its name, and no file is for training: rename it or give one that is, or say which data the rows are --like", first.path, namedFor(first.path))
	}
	return first, nil
}

// namedFor is the split whose name is a word in that of a file: "x_test.csv" is test,
// "latest.csv" is not.
func namedFor(path string) string {
	for _, word := range strings.FieldsFunc(strings.ToLower(filepath.Base(path)), func(r rune) bool { return !unicode.IsLetter(r) }) {
		if split := splitFolders[word]; split != "" {
			return split
		}
	}
	return "train"
}

// listed are names, of many the first.
func listed(names []string) string {
	const most = 8
	text := strings.Join(names[:min(len(names), most)], ", ")
	if len(names) > most {
		text += ", …"
	}
	return fmt.Sprintf("%s (%d)", readable(text), len(names))
}

// items are the samples of a split.
func (t *table) items(split string) originals {
	return reading(func(ctx context.Context, _ *budget, give func(Item) error) error {
		for rec, err := range t.rows(ctx, split) {
			if err != nil {
				return err
			}
			values, label, bad := t.sample(rec)
			it := Item{Name: rec.name(), Label: label, Values: func(context.Context, *budget) ([]byte, error) { return values, bad }}
			if err := give(it); err != nil {
				return err
			}
		}
		return nil
	})
}

// sample is a row as values and class.
func (t *table) sample(rec record) (values []byte, label int64, err error) {
	x := make([]float64, len(t.picks))
	if label, err = t.read(rec, x); err != nil {
		return nil, -1, err
	}
	values = make([]byte, 0, 4*len(x))
	for i, c := range t.columns {
		v := float32(c.Scaled(x[i]))
		if math.IsInf(float64(v), 0) {
			return nil, -1, fmt.Errorf("column %q is %v, which is too large for a float32", c.Name, x[i])
		}
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(v))
	}
	return values, label, nil
}

// read takes the values of a row into x, and gives its class, −1 for none.
func (t *table) read(rec record, x []float64) (label int64, err error) {
	if n := rec.width(); n != t.fields {
		return -1, fmt.Errorf("%d of %d fields, which the first row has", n, t.fields)
	}
	for i, k := range t.picks {
		if x[i], err = rec.value(k, t.columns[i].Name); err != nil {
			return -1, err
		}
	}
	if !t.classed() {
		return -1, nil
	}
	class, err := t.class(rec)
	label, known := t.classes[class]
	if err == nil && !known {
		err = t.unknownClass(class)
	}
	return label, err
}

// preprocessing says what was done to the rows.
func (t *table) preprocessing() shard.Preprocessing {
	p := shard.Preprocessing{"importer": "table", "standardize": strconv.FormatBool(t.Standardize && t.Like == nil)}
	if t.Like != nil {
		p["scale"] = "given"
	}
	if t.label >= 0 {
		p["classes"] = t.Label
	}
	if len(t.Labels) > 0 {
		p["classes"] = "given"
	}
	for _, s := range t.shares() {
		if s.percent > 0 {
			p["percent of "+s.split] = strconv.Itoa(s.percent)
		}
	}
	return p
}
