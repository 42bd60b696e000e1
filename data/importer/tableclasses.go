package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkLabels says what is wrong with the files of labels, as far as no file says it.
func (o TableOptions) checkLabels() error {
	switch {
	case len(o.Labels) == 0:
		return nil
	case o.Label != "":
		return errors.New("--labels and --label-column both say the classes: leave one of them out")
	case len(o.Labels) != len(o.Files):
		return fmt.Errorf("%d arrays of labels and %d of rows, expected one for each, in the same order, or none", len(o.Labels), len(o.Files))
	case o.Like != nil && len(o.Like.Classes) == 0:
		return errors.New("--labels is of no use: those of --like have no classes")
	}
	return nil
}

// readLabels reads the classes of the rows of a sheet, the one of that number.
func (o TableOptions) readLabels(ctx context.Context, number int, s *sheet) (err error) {
	if len(o.Labels) == 0 {
		return nil
	}
	if s.comma != 0 {
		return fmt.Errorf("%s: text, expected an array of NumPy's beside --labels: the classes of text are a column of it, which --label-column names", s.path)
	}
	s.labels, err = readLabels(ctx, o.Labels[number], s.path, s.kind.shape[0])
	return err
}

// classed says whether rows have classes.
func (t *table) classed() bool { return t.label >= 0 || len(t.Labels) > 0 }

// class is that of a row, as a word.
func (t *table) class(rec record) (string, error) {
	if len(t.Labels) > 0 {
		return strconv.FormatInt(rec.label, 10), nil
	}
	return rec.class(t.label, t.Label)
}

// unknownClass says that a row is of a class that --like does not have.
func (t *table) unknownClass(class string) error {
	where := fmt.Sprintf("column %q", t.Label)
	if len(t.Labels) > 0 {
		where = "its label"
	}
	return fmt.Errorf("%s is the class %q, which is none of those that are known", where, class)
}

// survey counts the rows of all files, and gives the names of the classes.
func (t *table) survey(ctx context.Context) (classes []string, err error) {
	seen := map[string]bool{}
	done, total := int64(0), t.known()
	for _, split := range []string{"train", "val", "test"} {
		for rec, err := range t.records(ctx, split) {
			if err != nil {
				return nil, err
			}
			t.counts[split]++
			done++
			t.progress("count", done, total)
			if err := t.note(rec, seen); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case !t.classed():
	case t.Like != nil:
		classes = t.Like.Classes
	default:
		classes = slices.SortedFunc(maps.Keys(seen), byNumber)
	}
	t.classes = map[string]int64{}
	for i, c := range classes {
		t.classes[c] = int64(i)
	}
	return classes, nil
}

// note adds the class of a row to those that were seen, where rows say which there are. What
// is wrong with a row is said when it is read again, in its turn.
func (t *table) note(rec record, seen map[string]bool) error {
	if !t.classed() || t.Like != nil || rec.width() != t.fields {
		return nil
	}
	class, err := t.class(rec)
	if err != nil {
		return nil //nolint:nilerr // said in its turn
	}
	if seen[class] = true; len(seen) > mostClasses {
		return fmt.Errorf("%s: more than %d classes in column %q, expected few: is it one of numbers?", rec.name(), mostClasses, t.Label)
	}
	return nil
}

// known is how many rows all files have, −1 if some are text.
func (t *table) known() (rows int64) {
	for _, sheets := range t.sheets {
		for _, s := range sheets {
			if s.comma != 0 {
				return -1
			}
			rows += s.kind.shape[0]
		}
	}
	return rows
}

// byNumber orders numbers as such, and before other words.
func byNumber(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX == nil && errY == nil:
		return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	}
	return strings.Compare(a, b)
}
