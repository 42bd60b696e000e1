package results

import (
	"path/filepath"
	"slices"

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
		shown, err := s.shown(p)
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

// shown are those of p: of each row that of the first finished seed, the last of several.
func (s *Sheet) shown(p plan.Picture) (all []shown, err error) {
	row := ""
	for _, f := range s.finished {
		if f.Row == row || p.Rows != nil && !slices.Contains(p.Rows, f.Row) {
			continue
		}
		row = f.Row
		found, err := filepath.Glob(filepath.Join(f.Dir(), p.Glob))
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			all = append(all, shown{row, slices.Max(found)})
		}
	}
	return all, nil
}
