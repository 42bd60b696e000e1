package results

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// Sheet is what there is of an experiment.
type Sheet struct {
	e     plan.Experiment
	seeds []uint64 // the experiment's own, and those found besides
	cells int      // finished or not
	table judge.Table

	finished []found              // of a row, of one commit
	commits  map[string]string    // of the rows that have finished cells
	machine  string               // where times are measured, that of all cells
	data     map[string]cell.Data // of these, by the data set that rows are trained on
	begun    bool                 // some cell is, or is damaged
	whole    bool                 // some finished cell has as many steps as the experiment says
	left     []string
	damage   []error
}

// found is a cell with what is on the disk.
type found struct {
	cell.Cell
	status  cell.Status
	damaged error // a file of it is
}

// Load reads the cells of an experiment.
func Load(root string, e plan.Experiment) (*Sheet, error) {
	s := &Sheet{e: e, seeds: slices.Clone(e.Seeds), table: judge.Table{}, commits: map[string]string{}, data: map[string]cell.Data{}}
	var all []found
	for _, r := range e.Rows {
		seeds, err := seedsOf(root, e, r)
		if err != nil {
			return nil, err
		}
		s.seeds = append(s.seeds, seeds...)
		for _, seed := range seeds {
			c := cell.Cell{Root: root, Experiment: e.Name, Row: r.Name, Seed: seed}
			f := found{Cell: c}
			f.status, err = c.Load()
			if _, damaged := errors.AsType[*cell.DamagedError](err); damaged {
				f.damaged = err
				s.damage = append(s.damage, err)
			} else if err != nil {
				return nil, err
			}
			s.begun = s.begun || f.damaged != nil || f.status.Begun != nil
			all = append(all, f)
		}
	}
	slices.Sort(s.seeds)
	s.seeds, s.cells = slices.Compact(s.seeds), len(all)
	s.choose(all)
	s.fill()
	s.name(all)
	return s, nil
}

// seedsOf are the seeds of an experiment, and others that there are of a row.
func seedsOf(root string, e plan.Experiment, r plan.Row) ([]uint64, error) {
	seeds := slices.Clone(e.Seeds)
	entries, err := os.ReadDir(filepath.Join(root, e.Name, r.Name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		text, ok := strings.CutPrefix(entry.Name(), "seed-")
		if n, err := strconv.ParseUint(text, 10, 64); ok && err == nil {
			seeds = append(seeds, n)
		}
	}
	slices.Sort(seeds)
	return slices.Compact(seeds), nil
}

// choose takes of each row the finished cells that are whole, or, where none of the
// experiment is, those that were tried out; of them those of the commit of its newest one; where
// times are measured, of the commit and the machine of the newest one of all rows. Of these it takes those of the data
// of the newest one: rows are compared with each other.
func (s *Sheet) choose(all []found) {
	s.whole = slices.ContainsFunc(all, func(f found) bool { return f.status.Finished() && !f.status.Measured.TriedOut })
	newest := map[string]time.Time{}
	for _, f := range all {
		if row := s.unit(f); s.takes(f) && f.status.Measured.Ended.After(newest[row]) {
			newest[row], s.commits[row] = f.status.Measured.Ended, f.status.Measured.Commit
			s.machine = f.status.Measured.Machine
		}
	}
	clear(newest)
	for _, f := range all {
		if set := s.set(f); s.committed(f) && f.status.Measured.Data != nil && f.status.Measured.Ended.After(newest[set]) {
			newest[set], s.data[set] = f.status.Measured.Ended, f.status.Measured.Data
		}
	}
	for _, f := range all {
		if s.counts(f) {
			s.finished = append(s.finished, f)
		}
	}
}

// takes says whether a cell is finished, and not only tried out where others are whole.
func (s *Sheet) takes(f found) bool {
	return f.status.Finished() && !(s.whole && f.status.Measured.TriedOut)
}

// triedOut says that nothing but tries is in the results.
func (s *Sheet) triedOut() bool { return !s.whole && !s.Empty() }

// unit is what a cell must have its commit in common with: its row, or all.
func (s *Sheet) unit(f found) string {
	if s.e.Alone {
		return ""
	}
	return f.Row
}

// set is the data set of a cell: its row's own, or that of all.
func (s *Sheet) set(f found) string {
	if r, ok := s.e.Row(f.Row); ok && r.Data != nil {
		return r.Data.Name
	}
	return ""
}

// committed says whether a cell may be taken, and is of the commit, and the machine, that is.
func (s *Sheet) committed(f found) bool {
	return s.takes(f) && f.status.Measured.Commit == s.commits[s.unit(f)] && !s.elsewhere(f)
}

// elsewhere says whether times are measured, and those of a finished cell are of another machine.
func (s *Sheet) elsewhere(f found) bool { return s.e.Alone && f.status.Measured.Machine != s.machine }

// counts says whether a cell is part of the results.
func (s *Sheet) counts(f found) bool {
	return s.committed(f) && s.otherData(f) == ""
}

// otherData says how the data of a finished cell differ from those that are taken; "" if
// they do not, or are not known.
func (s *Sheet) otherData(f found) string { return f.status.Measured.Data.Other(s.data[s.set(f)]) }

// made says of which commit the cells are, and where it is not one, which rows.
func (s *Sheet) made() string {
	var order []string
	rows := map[string][]string{}
	for _, f := range s.finished {
		c := f.status.Measured.Commit
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
		if !slices.Contains(rows[c], f.Row) {
			rows[c] = append(rows[c], f.Row)
		}
	}
	if len(order) == 1 {
		return "commit " + order[0]
	}
	for i, c := range order {
		order[i] = fmt.Sprintf("commit %s (%s)", c, strings.Join(rows[c], ", "))
	}
	return strings.Join(order, " and ")
}

// fill makes the table of the finished cells.
func (s *Sheet) fill() {
	for _, f := range s.finished {
		row := s.table[f.Row]
		if row.Values == nil {
			row.Values = map[string]map[uint64]float64{}
		}
		if f.status.Measured.Broken != nil {
			row.Diverged = append(row.Diverged, f.Seed)
		}
		for name, v := range f.status.Measured.Values {
			if row.Values[name] == nil {
				row.Values[name] = map[uint64]float64{}
			}
			row.Values[name][f.Seed] = v
		}
		s.table[f.Row] = row
	}
}

// name lists the cells that are not part of the results, with the reason.
func (s *Sheet) name(all []found) {
	var order []string // of reasons
	rows := map[string][]string{}
	for i, f := range all {
		why := s.why(f)
		if why == "" {
			continue
		}
		if !slices.Contains(order, why) {
			order = append(order, why)
		}
		if i > 0 && f.Row == all[i-1].Row && s.why(all[i-1]) == why {
			rows[why][len(rows[why])-1] += fmt.Sprintf(", %d", f.Seed)
		} else {
			rows[why] = append(rows[why], fmt.Sprintf("%s seed %d", f.Row, f.Seed))
		}
	}
	for _, why := range order {
		s.left = append(s.left, why+": "+strings.Join(rows[why], "; "))
	}
}

// why a cell is not part of the results, or is part of them without numbers; ""
// if it has numbers.
func (s *Sheet) why(f found) string {
	m := f.status.Measured
	switch {
	case f.damaged != nil:
		return "left out (" + f.damaged.Error() + ")"
	case f.status.Begun == nil:
		return "not begun"
	case m == nil:
		return "begun, not finished"
	case !f.status.Finished():
		return "came to nothing (" + m.Broken.String() + ")"
	case !s.takes(f):
		return fmt.Sprintf("tried out with %d steps, left out", m.Steps)
	case m.Commit != s.commits[s.unit(f)]:
		return "of commit " + m.Commit + ", left out"
	case s.elsewhere(f):
		return "of another machine (" + m.Machine + "), left out"
	case s.otherData(f) != "":
		return "of other data (" + s.otherData(f) + "), left out"
	case m.Broken != nil:
		return "diverged (" + m.Broken.Line + ")"
	}
	return ""
}

// Damage says which files of cells are damaged, and what to do. Those cells are left out.
func (s *Sheet) Damage() []error { return s.damage }

// Begun says that some cell has been begun.
func (s *Sheet) Begun() bool { return s.begun }

// Empty says that no cell is finished.
func (s *Sheet) Empty() bool { return len(s.finished) == 0 }

// verdicts are those on all claims; none where the experiment was tried out. Beside those that
// rest on cells whose energy saturated stands which these are, and beside times which seeds are
// not compared.
func (s *Sheet) verdicts() []judge.Verdict {
	if s.triedOut() {
		return nil
	}
	var all []judge.Verdict
	stuck := s.saturated()
	for _, c := range s.e.AllChecks() {
		table, without := s.timed(c)
		v := c.Judge(table)
		if without != "" {
			v.Detail += " (" + without + ")"
		}
		rests := slices.DeleteFunc(slices.Clone(stuck), func(one saturated) bool {
			return !slices.ContainsFunc(c.Values(), func(v judge.Value) bool { return v.Row == one.row })
		})
		if len(rests) > 0 && v.State != judge.NotRun {
			v.Detail += " (saturated: " + cells(rests) + ")"
		}
		all = append(all, v)
	}
	return all
}

// count counts the verdicts of a state.
func count(all []judge.Verdict, state judge.State) (n int) {
	for _, v := range all {
		if v.State == state {
			n++
		}
	}
	return n
}

// cost is the seconds of processor time, and of it those of training.
func (s *Sheet) cost() (all, train float64) {
	for _, f := range s.finished {
		all += f.status.Measured.CPU
		train += f.status.Measured.Train
	}
	return all, train
}

// distinct are the different values of a field of the finished cells.
func (s *Sheet) distinct(field func(*cell.Measured) string) string {
	var words []string
	for _, f := range s.finished {
		if w := field(f.status.Measured); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return strings.Join(words, " and ")
}

// ended is when the last cell was finished.
func (s *Sheet) ended() time.Time {
	last := slices.MaxFunc(s.finished, func(a, b found) int {
		return cmp.Compare(a.status.Measured.Ended.Unix(), b.status.Measured.Ended.Unix())
	})
	return last.status.Measured.Ended
}

// Summary is the sheet in a line.
func (s *Sheet) Summary() string {
	v := s.verdicts()
	text := fmt.Sprintf("%s: %d of %d cells finished", s.e.Name, len(s.finished), s.cells)
	if s.triedOut() {
		return text + ", only tried out"
	}
	return fmt.Sprintf("%s; of %d claims %d hold, %d fail, %d are undecided, %d are not run", text, len(v),
		count(v, judge.Holds), count(v, judge.Fails), count(v, judge.Undecided), count(v, judge.NotRun))
}
