package plan

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
)

// plainName is what names of experiments and rows look like: they become folders.
var plainName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// ours are flags of train that bin/experiment gives itself.
var ours = []string{"preset", "seed", "data", "out", "resume", "threads"}

// Validate says everything that is wrong with an experiment. No program asks, as
// experiments are built in: it is what the test of the catalogue holds them all to.
func (e Experiment) Validate() error {
	var errs []error
	for _, check := range []func() []error{
		e.checkItself, e.checkRows, e.checkData,
		e.checkRanks, e.checkColumns, e.checkCurves, e.checkSaturation, e.checkChecks, e.checkFigures,
	} {
		for _, err := range check() {
			errs = append(errs, fmt.Errorf("experiment %s: %w", e.Name, err))
		}
	}
	return errors.Join(errs...)
}

// checkItself says what is wrong with what is no row, data set or column.
func (e Experiment) checkItself() (errs []error) {
	if !plainName.MatchString(e.Name) {
		errs = append(errs, errors.New("a name is of small letters, digits, points and dashes"))
	}
	if e.About == "" || len(e.Rows) == 0 || len(e.Seeds) == 0 || len(e.Columns) == 0 {
		errs = append(errs, errors.New("want About, Rows, Seeds and Columns"))
	}
	if e.Compute != nil && (e.Flags != nil || e.Evaluate != nil || e.Sample != nil || e.Between != nil || e.Curves != nil || e.Select != nil || e.Beside != nil || e.Alone) {
		errs = append(errs, errors.New("a computed experiment trains nothing: want no Flags, Evaluate, Sample, Between, Curves, Select, Beside and Alone"))
	}
	if s := e.Select; s != nil && (measure.Asks(s.Measure) == "" || s.Of < 1) {
		errs = append(errs, errors.New("a selection is by a measure of evaluate, of at least one checkpoint"))
	}
	return errs
}

func (e Experiment) checkRows() (errs []error) {
	seen := map[string]bool{}
	for _, r := range e.Rows {
		if seen[r.Name] || !plainName.MatchString(r.Name) {
			errs = append(errs, fmt.Errorf("row %q: names are of small letters, digits, points and dashes, and differ", r.Name))
		}
		seen[r.Name] = true
		for _, err := range e.checkRow(r) {
			errs = append(errs, fmt.Errorf("row %s: %w", r.Name, err))
		}
	}
	return errs
}

// checkData says what is wrong with the data sets of an experiment.
func (e Experiment) checkData() (errs []error) {
	if e.Between != nil && e.Data != nil && e.Data.Sentences {
		errs = append(errs, errors.New("there is nothing between sentences"))
	}
	for _, d := range e.Beside {
		if d.Builtin == "" && (d.Make == nil || d.Source == "") || d.Name == "" {
			errs = append(errs, errors.New("a data set beside its own has a Name and either Builtin or Make and Source"))
		}
	}
	if e.Data != nil {
		if err := e.Data.check(); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// check says what is wrong with a data set that is trained on.
func (d DataSet) check() error {
	if d.Name == "" || (d.Builtin == "") == (d.Make == nil) || d.Make != nil && d.Source == "" {
		return errors.New("a data set has a Name and either Builtin or Make and Source")
	}
	return nil
}

// checkRanks says what is wrong with numbers of ranks, and with columns that compare
// them.
func (e Experiment) checkRanks() (errs []error) {
	for _, c := range e.Columns {
		if m, ok := measure.Find(c); ok && e.Compute == nil && m.Ranks != (e.Ranks != nil) {
			errs = append(errs, fmt.Errorf("column %s: it compares numbers of ranks: %v, and the experiment has some: %v", c, m.Ranks, e.Ranks != nil))
		}
	}
	if e.Ranks == nil {
		return errs
	}
	if len(e.Ranks) < 2 || e.Ranks[0] < 1 || !slices.IsSorted(e.Ranks) || len(slices.Compact(slices.Clone(e.Ranks))) < len(e.Ranks) {
		errs = append(errs, fmt.Errorf("ranks %v: want two numbers or more, rising", e.Ranks))
	}
	if !e.Alone || e.Compute != nil || e.Evaluate != nil || e.Sample != nil || e.Between != nil || e.Curves != nil || e.Select != nil || e.Beside != nil || e.Pictures != nil {
		errs = append(errs, errors.New("numbers of ranks are compared alone, and of losses, time and memory: want Alone, and no Compute, Evaluate, Sample, Between, Curves, Select, Beside and Pictures"))
	}
	return errs
}

func (e Experiment) checkRow(r Row) (errs []error) {
	if d := r.Data; d != nil {
		if err := d.check(); err != nil {
			errs = append(errs, err)
		}
		if e.Data != nil || e.Ranks == nil {
			errs = append(errs, errors.New("a row has data of its own only where numbers of ranks are compared, and the experiment has none for all"))
		}
	}
	for _, column := range slices.Sorted(maps.Keys(r.Expect)) {
		if !slices.Contains(e.Columns, column) {
			errs = append(errs, fmt.Errorf("expects %s, which is no column", column))
		}
	}
	for _, name := range r.Lacks {
		if !slices.Contains(e.Columns, name) && !e.hasCurve(name) {
			errs = append(errs, fmt.Errorf("lacks %s, which is no column and no curve", name))
		}
	}
	if e.Compute != nil {
		if r.Preset != "" {
			errs = append(errs, errors.New("a computed row has no preset"))
		}
		return errs
	}
	return append(errs, e.checkFlags(r)...)
}

// checkFlags says what is wrong with the flags of a row that is trained.
func (e Experiment) checkFlags(r Row) (errs []error) {
	for _, name := range ours {
		if r.Flags[name] != "" || e.Flags[name] != "" {
			errs = append(errs, fmt.Errorf("--%s is given by the program", name))
		}
	}
	steps, ok := r.Flags["steps"]
	if !ok {
		steps = e.Flags["steps"]
	}
	if n, err := strconv.ParseInt(steps, 10, 64); err != nil || n < 1 {
		errs = append(errs, fmt.Errorf("steps %q: want a number of at least 1", steps))
	}
	return errs
}

func (e Experiment) checkColumns() (errs []error) {
	if e.Compute != nil {
		return nil // its columns are its own
	}
	for _, c := range e.Columns {
		m, ok := measure.Find(c)
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("column %s: there is no such measure", c))
		case m.Curve != "" && !e.hasCurve(m.Curve):
			errs = append(errs, fmt.Errorf("column %s is of the curve %s, which there is not", c, m.Curve))
		case m.Beside != "" && !e.hasBeside(m.Beside):
			errs = append(errs, fmt.Errorf("column %s is of the data set %s, which is not beside the experiment's own", c, m.Beside))
		}
	}
	return errs
}

func (e Experiment) checkCurves() (errs []error) {
	for _, c := range e.Curves {
		if c.Name == "" || (c.Loss != "") == (c.Every != 0) || (c.Every != 0) != (measure.Asks(c.Measure) != "") || c.Every < 0 {
			errs = append(errs, fmt.Errorf("curve %q: want a name, and either a loss, or a measure of evaluate and every how many steps", c.Name))
		}
	}
	return errs
}

func (e Experiment) checkSaturation() (errs []error) {
	rule := e.Saturates
	if rule == nil {
		return nil
	}
	if len(rule.Curves) == 0 || rule.Within <= 0 || rule.Least < 2 {
		errs = append(errs, errors.New("saturation is seen in curves, within a distance above 0, at two checkpoints or more"))
	}
	for _, name := range rule.Curves {
		if !e.hasCurve(name) {
			errs = append(errs, fmt.Errorf("saturation is seen in the curve %s, which there is not", name))
		}
	}
	return errs
}

func (e Experiment) checkChecks() (errs []error) {
	for _, c := range e.AllChecks() {
		values := c.Values()
		if len(values) == 0 {
			errs = append(errs, fmt.Errorf("a %T of nothing", c))
		}
		for _, v := range values {
			r, ok := e.Row(v.Row)
			if !ok || !slices.Contains(e.Measured(r), v.Measure) {
				errs = append(errs, fmt.Errorf("a %T speaks of %s, which is not measured", c, v))
			}
		}
		if l, ok := c.(judge.Linear); ok && len(l.X) != len(l.Of) {
			errs = append(errs, fmt.Errorf("a line through %d values at %d places", len(l.Of), len(l.X)))
		}
	}
	return errs
}

func (e Experiment) checkFigures() (errs []error) {
	for _, f := range e.Figures {
		if f.File == "" || f.Title == "" || e.Compute == nil && (!e.hasCurve(f.Curve) || f.Beside != "" && !e.hasCurve(f.Beside)) {
			errs = append(errs, fmt.Errorf("figure %q: want a file, a title and one of the curves", f.File))
		}
		errs = append(errs, e.checkNamed(f.File, f.Rows)...)
	}
	for _, p := range e.Pictures {
		errs = append(errs, e.checkNamed(p.Title, p.Rows)...)
	}
	return errs
}

func (e Experiment) hasBeside(name string) bool {
	return slices.ContainsFunc(e.Beside, func(d DataSet) bool { return d.Name == name })
}

func (e Experiment) hasCurve(name string) bool {
	return slices.ContainsFunc(e.Curves, func(c Curve) bool { return c.Name == name })
}

// checkNamed says which of the rows that something is of there are not.
func (e Experiment) checkNamed(of string, rows []string) (errs []error) {
	for _, name := range rows {
		if _, ok := e.Row(name); !ok {
			errs = append(errs, fmt.Errorf("%s is of row %s, which there is not", of, name))
		}
	}
	return errs
}
