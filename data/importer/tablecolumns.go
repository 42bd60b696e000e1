package importer

import (
	"fmt"
	"slices"
	"strconv"

	"ebtrain/data"
)

// choose finds the columns that become values, and that of the classes.
func (t *table) choose(s sheet) (err error) {
	t.fields = len(s.names)
	if t.Label != "" {
		if t.label, err = s.find("--label-column", t.Label); err != nil {
			return err
		}
		t.Label = s.names[t.label]
	}
	if t.Like != nil {
		return t.alike(s)
	}
	out := map[int]bool{}
	for _, name := range t.LeaveOut {
		k, err := s.find("--leave-out", name)
		if err != nil {
			return err
		}
		out[k] = true
	}
	pick := t.pickNamed
	if len(t.Columns) == 0 {
		pick = t.pickAll
	}
	if err := pick(s, out); err != nil {
		return err
	}
	if len(t.picks) == 0 {
		return fmt.Errorf("no column is left for values, of %s", listed(s.names))
	}
	for _, k := range t.picks {
		t.columns = append(t.columns, data.Column{Name: s.names[k], SD: 1})
	}
	return nil
}

// pickNamed takes the columns that Columns names.
func (t *table) pickNamed(s sheet, out map[int]bool) error {
	for _, name := range t.Columns {
		k, err := s.find("--columns", name)
		switch {
		case err != nil:
			return err
		case out[k] || k == t.label || slices.Contains(t.picks, k):
			return fmt.Errorf("--columns %s: that column is named twice, or is left out or one of the classes", name)
		}
		t.picks = append(t.picks, k)
	}
	return nil
}

// pickAll takes all columns but those of out and that of the classes.
func (t *table) pickAll(s sheet, out map[int]bool) error {
	for k, name := range s.names {
		if k == t.label || out[k] {
			continue
		}
		if name == unnamed(k) {
			return fmt.Errorf("column %d has no name, as the numbers of rows that pandas and R write have none: leave it out with --leave-out %d", k, k)
		}
		t.picks = append(t.picks, k)
	}
	return nil
}

// alike finds the columns of --like, by their names.
func (t *table) alike(s sheet) error {
	t.columns = t.Like.Columns
	for _, c := range t.columns {
		k := slices.Index(s.names, c.Name)
		if k < 0 || k == t.label {
			return fmt.Errorf("no column %q, which those of --like have, among %s", c.Name, listed(s.names))
		}
		t.picks = append(t.picks, k)
	}
	if t.label >= 0 && len(t.Like.Classes) == 0 {
		return fmt.Errorf("--label-column %s is of no use: those of --like have no classes", t.Label)
	}
	return nil
}

// find is the number of the column that a flag names: by its name or, if none has it, its
// number from 0.
func (s sheet) find(flag, name string) (int, error) {
	if k := slices.Index(s.names, name); k >= 0 {
		return k, nil
	}
	if k, err := strconv.Atoi(name); err == nil && k >= 0 && k < len(s.names) {
		return k, nil
	}
	return 0, fmt.Errorf("%s %s: no such column; there are %s, numbered from 0", flag, name, listed(s.names))
}

// found says what was taken for what.
func (t *table) found(s sheet) string {
	what := "no header, so columns are called by their numbers from 0"
	if s.header {
		what = "a header in its first line"
	}
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.Name
	}
	text := fmt.Sprintf("%s: %s; values are %s", s.path, what, listed(names))
	if t.label >= 0 {
		text += fmt.Sprintf(", classes %s", readable(t.Label))
	}
	if len(t.Labels) > 0 {
		text += fmt.Sprintf(", classes those of %s", t.Labels[0])
	}
	return text
}
