package results

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/trainer/experiment/plan"
)

// Kept are the files that the report of an experiment is made of: what is known of its
// finished cells, and the pictures and texts that are shown.
func (s *Sheet) Kept() ([]string, error) {
	var all []string
	for _, f := range s.finished {
		all = append(all, f.Files()...)
	}
	for _, p := range s.e.Pictures {
		shown, _, err := s.shown(p)
		if err != nil {
			return nil, err
		}
		for _, f := range shown {
			all = append(all, f.file)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// shown is a picture or a text of a row.
type shown struct{ row, file string }

// shown are those of p: of each row that of the first finished seed, the last of several;
// and the rows that have none. What diverged is not asked for any.
func (s *Sheet) shown(p plan.Picture) (all []shown, without []string, err error) {
	row := ""
	for _, f := range s.finished {
		if f.Row == row || f.status.Measured.Broken != nil || p.Rows != nil && !slices.Contains(p.Rows, f.Row) {
			continue
		}
		row = f.Row
		found, err := filepath.Glob(filepath.Join(f.Dir(), p.Glob))
		if err != nil {
			return nil, nil, err
		}
		if len(found) == 0 {
			without = append(without, row)
			continue
		}
		all = append(all, shown{row, slices.Max(found)})
	}
	return all, without, nil
}

// missing says in a line which plots, pictures and texts the experiment is to show and its
// finished cells have not; "" if there are all.
func (s *Sheet) missing() (string, error) {
	var each []string
	for _, f := range s.e.Figures {
		if !slices.ContainsFunc(s.e.Rows, func(r plan.Row) bool { return len(s.points(r, f)) > 0 }) {
			each = append(each, fmt.Sprintf("the plot %q", f.Title))
		}
	}
	for _, p := range s.e.Pictures {
		_, without, err := s.shown(p)
		if err != nil {
			return "", err
		}
		if len(without) > 0 {
			each = append(each, fmt.Sprintf("%q of %s", p.Title, strings.Join(without, ", ")))
		}
	}
	if len(each) == 0 {
		return "", nil
	}
	return "not kept with the cells, so not shown: " + strings.Join(each, "; "), nil
}
