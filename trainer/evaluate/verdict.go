package main

import (
	"fmt"
	"slices"
	"strings"
)

// addVerdict adds what the numbers say of the rows and of the samples: which controls a
// row holds for as good as real ones, and which of the others the samples do not beat. Of a
// row without a floor nobody knows which of both it is.
func (c *comparison) addVerdict(add adder, noun string) {
	lines := c.rowsOf(fmt.Sprintf("not told from real %s, since no worse than the floor:", noun), comparisonRow.unseen)
	lines = append(lines, c.unbeaten()...)
	lines = append(lines, c.rowsOf("no worse than the samples: a row does not see what is wrong, or the samples are that bad:", comparisonRow.unknown)...)
	lines = append(lines, c.ofPrior()...)
	for _, l := range lines {
		add("%s\n", l)
	}
	if len(lines) > 0 && len(c.Notes) > 0 {
		add("\n")
	}
}

// rowsOf are the rows that have such controls, below a head.
func (c *comparison) rowsOf(head string, of func(comparisonRow) []string) (lines []string) {
	for _, row := range c.Rows {
		if names := of(row); len(names) > 0 {
			lines = append(lines, row.Title+"\t"+strings.Join(names, ", "))
		}
	}
	if len(lines) > 0 {
		lines = append([]string{"", head}, lines...)
	}
	return lines
}

// floor is the number of real samples that others are compared with; nil if there is none.
func (r comparisonRow) floor() *float64 {
	if r.few {
		return nil
	}
	return r.Floor
}

// unseen are the controls that come out no worse than real samples.
func (r comparisonRow) unseen() (names []string) {
	for _, name := range setNames() {
		if v, ok := r.Controls[name]; ok && r.floor() != nil && !r.Better.Beats(*r.floor(), v) {
			names = append(names, name)
		}
	}
	return names
}

// unknown are the controls that come out no worse than the samples, beside no floor.
func (r comparisonRow) unknown() (names []string) {
	if r.floor() != nil {
		return nil
	}
	for _, name := range r.Blind {
		if name != setNormal {
			names = append(names, name)
		}
	}
	return names
}

// ofPrior says by which rows samples are no better than those of latents from N(0, I). These
// are not known to be bad: they say what the learnt prior does.
func (c *comparison) ofPrior() []string {
	var by []string
	for _, row := range c.Rows {
		if slices.Contains(row.Blind, setNormal) {
			by = append(by, row.Title)
		}
	}
	if by == nil {
		return nil
	}
	return []string{"", "samples no better than those of latents from " + setNormal + ", in whose place the prior was learnt, by " + strings.Join(by, "; ")}
}

// unbeaten are lines on the controls that rows see, and by which rows the samples are no
// better than they are. Where that is so of most, the samples are bad, whatever the
// single numbers say.
func (c *comparison) unbeaten() (lines []string) {
	lost, seen := 0, 0
	for _, name := range c.sets() {
		var by []string
		for _, row := range c.Rows {
			if _, ok := row.Controls[name]; !ok || name == setNormal || row.floor() == nil || row.Samples == nil || slices.Contains(row.unseen(), name) {
				continue
			}
			seen++
			if slices.Contains(row.Blind, name) {
				by = append(by, row.Title)
			}
		}
		if lost += len(by); len(by) > 0 {
			lines = append(lines, name+"\tby "+strings.Join(by, "; "))
		}
	}
	if lost == 0 {
		return nil
	}
	so := ""
	if 2*lost > seen {
		so = "; the samples are bad"
	}
	return append([]string{"", fmt.Sprintf("samples no better than a set that is known to be bad, in %d of %d comparisons%s:", lost, seen, so)}, lines...)
}
