package results

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
)

// page is a text that grows.
type page struct{ strings.Builder }

func (p *page) add(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

// row adds a row of a table.
func (p *page) row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	p.add("| %s |\n", strings.Join(cells, " | "))
}

// head adds the head of a table.
func (p *page) head(titles ...string) {
	p.row(titles...)
	p.add("|%s\n", strings.Repeat("---|", len(titles)))
}

// overview is the table of all experiments.
func (p *page) overview(sheets []*Sheet) {
	p.head("experiment", "cells finished", "claims that hold", "that fail", "undecided", "not run", "CPU time")
	for _, s := range sheets {
		v := s.verdicts()
		cpu, _ := s.cost()
		name := s.e.Name
		if !s.Empty() {
			name = fmt.Sprintf("[%s](#%s)", name, name)
		}
		p.row(name, fmt.Sprintf("%d of %d", len(s.finished), s.cells),
			fmt.Sprint(count(v, judge.Holds)), fmt.Sprint(count(v, judge.Fails)), fmt.Sprint(count(v, judge.Undecided)), fmt.Sprint(count(v, judge.NotRun)), duration(cpu))
	}
}

// section is everything about one experiment. pictures are what was drawn.
func (p *page) section(s *Sheet, pictures []drawn) error {
	p.add("\n## %s\n\n%s\n\n", s.e.Name, s.e.About)
	cpu, train := s.cost()
	p.add("`%s` · %s · %s · %s of processor time", s.command(), s.made(), s.distinct(func(m *cell.Measured) string { return m.Machine }), duration(cpu))
	if train > 0 {
		p.add(", %s of it training", duration(train))
	}
	p.add(" · finished %s\n\n", s.ended().UTC().Format(time.DateTime))
	if s.triedOut() {
		steps := s.distinct(func(m *cell.Measured) string { return strconv.FormatInt(m.Steps, 10) })
		p.add("**Only tried out, with %s steps: nothing is judged.**\n\n", steps)
	}
	p.values(s)
	if sel := s.e.Select; sel != nil {
		p.add("\nOf %d checkpoints of a run that with the least %s was measured (`evaluate %s`).\n", sel.Of, title(sel.Measure), strings.Join(plan.Flags(sel.Evaluate), " "))
	}
	if s.e.Source != "" {
		p.add("\nExpected: %s.\n", s.e.Source)
	}
	if err := p.controls(s); err != nil {
		return err
	}
	p.saturation(s)
	p.claims(s)
	for _, d := range pictures {
		if d.file == "" {
			p.add("\n%s:\n\n```\n%s```\n", d.title, d.text)
			continue
		}
		p.add("\n![%s](%s)\n", d.title, d.file)
	}
	missing, err := s.missing()
	if err != nil {
		return err
	}
	p.notes(s, missing)
	p.commands(s)
	return nil
}

// command is what makes the cells.
func (s *Sheet) command() string {
	var seeds []string
	for _, n := range s.seeds {
		seeds = append(seeds, strconv.FormatUint(n, 10))
	}
	return fmt.Sprintf("experiment run %s --seeds %s", s.e.Name, strings.Join(seeds, ","))
}

// values is the table of means.
func (p *page) values(s *Sheet) {
	titles := []string{"row", "flags", "seeds"}
	for _, c := range s.e.Columns {
		titles = append(titles, title(c))
		if s.expects(c) {
			titles = append(titles, "expected")
		}
	}
	p.head(titles...)
	for _, r := range s.e.Rows {
		cells := []string{r.Name, flags(r), s.seedsIn(r)}
		for _, c := range s.e.Columns {
			cells = append(cells, s.cell(r, c))
			if s.expects(c) {
				cells = append(cells, expected(r, c))
			}
		}
		p.row(cells...)
	}
}

func title(column string) string {
	if m, ok := measure.Find(column); ok {
		return m.Title
	}
	return column
}

func flags(r plan.Row) string {
	words := plan.Flags(r.Flags)
	if r.Preset != "" {
		words = append([]string{r.Preset}, words...)
	}
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, " ") + "`"
}

// seedsIn is how many seeds of a row are finished, in words if there is none.
func (s *Sheet) seedsIn(r plan.Row) string {
	if n := s.seedsOf(r); n > 0 {
		return strconv.Itoa(n)
	}
	return "not run"
}

// seedsOf is how many seeds of a row are finished.
func (s *Sheet) seedsOf(r plan.Row) (n int) {
	for _, f := range s.finished {
		if f.Row == r.Name {
			n++
		}
	}
	return n
}

// expects says whether a column has an expected number.
func (s *Sheet) expects(column string) bool {
	for _, r := range s.e.Rows {
		if _, ok := r.Expect[column]; ok {
			return true
		}
	}
	return false
}

func expected(r plan.Row, column string) string {
	if n, ok := r.Expect[column]; ok {
		return n.String()
	}
	return ""
}

// cell is mean ± sd, or why there is none; where it is of some seeds since others
// diverged, it says so.
func (s *Sheet) cell(r plan.Row, column string) string {
	spread := s.table.Spread(judge.Value{Row: r.Name, Measure: column})
	switch {
	case spread.N == 0 && len(s.table[r.Name].Diverged) > 0:
		return "diverged"
	case spread.N == 0:
		return "–"
	}
	text := number(column, spread.Mean)
	if spread.N > 1 {
		text += " ± " + number(column, spread.SD)
	}
	if diverged := len(s.table[r.Name].Diverged); diverged > 0 {
		text += fmt.Sprintf(" (%d of %d; %d diverged)", spread.N, s.seedsOf(r), diverged)
	}
	return text
}

// number is v with the digits of its measure.
func number(column string, v float64) string {
	m, ok := measure.Find(column)
	if !ok || m.Digits < 0 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', m.Digits, 64)
}

// claims is the table of verdicts.
func (p *page) claims(s *Sheet) {
	all := s.verdicts()
	if len(all) == 0 {
		return
	}
	p.add("\n")
	p.head("what must come out", "", "found")
	for _, v := range all {
		p.row(v.Claim, v.State.String(), v.Detail)
	}
}

// notes are what is missing, first what should be shown, and what the cells say
// themselves.
func (p *page) notes(s *Sheet, missing string) {
	lines := append([]string{}, s.left...)
	if missing != "" {
		lines = slices.Insert(lines, 0, missing)
	}
	for _, f := range s.finished {
		for _, n := range f.status.Measured.Notes {
			lines = append(lines, fmt.Sprintf("%s seed %d: %s", f.Row, f.Seed, n))
		}
	}
	if len(lines) > 0 {
		p.add("\n")
	}
	for _, l := range lines {
		p.add("- %s\n", l)
	}
}

// commands are those of the first finished seed of each row.
func (p *page) commands(s *Sheet) {
	p.add("\n<details><summary>commands</summary>\n\n```\n")
	row := ""
	for _, f := range s.finished {
		if f.Row == row {
			continue
		}
		row = f.Row
		for _, c := range f.status.Measured.Command {
			p.add("%s\n", strings.Join(f.anywhere(c), " "))
		}
	}
	p.add("```\n\n</details>\n")
}

// anywhere is a command of a cell with the usual folder of experiments in place of one
// that is only on the machine that ran it.
func (f found) anywhere(command []string) []string {
	usual := f.Cell
	usual.Root = "runs/experiments"
	end := strings.TrimPrefix(usual.Dir(), usual.Root)
	shown := slices.Clone(command)
	for i, arg := range shown {
		if flag, folder, _ := strings.Cut(arg, "="); filepath.IsAbs(folder) && strings.HasSuffix(folder, end) {
			shown[i] = flag + "=" + usual.Dir()
		}
	}
	return shown
}

// duration is seconds in words.
func duration(seconds float64) string {
	s := int64(math.Round(seconds))
	switch {
	case seconds < 10:
		return fmt.Sprintf("%.1f s", seconds)
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 7200:
		return fmt.Sprintf("%d min", (s+30)/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}
