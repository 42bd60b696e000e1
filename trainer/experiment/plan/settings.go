package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Settings are the flags of train that define what a row computes, sorted:
// --preset, those of the experiment, those of the row, and the seed. steps, if
// not 0, takes the place of the row's --steps.
func (e Experiment) Settings(r Row, seed uint64, steps int64) []string {
	flags := maps.Clone(e.Flags)
	if flags == nil {
		flags = map[string]string{}
	}
	maps.Copy(flags, r.Flags)
	if steps > 0 {
		flags["steps"] = strconv.FormatInt(steps, 10)
	}
	if r.Preset != "" {
		flags["preset"] = r.Preset
	}
	flags["seed"] = strconv.FormatUint(seed, 10)
	return Flags(flags)
}

// Steps is the number of steps of a row; 0 for a computed experiment.
func (e Experiment) Steps(r Row) int64 {
	text, ok := r.Flags["steps"]
	if !ok {
		text = e.Flags["steps"]
	}
	n, _ := strconv.ParseInt(text, 10, 64) // Validate has seen it
	return n
}

// Flags are flags as they are typed, sorted.
func Flags(flags map[string]string) []string {
	var args []string
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		args = append(args, "--"+name+"="+flags[name])
	}
	return args
}

// Measured are the columns that a row has.
func (e Experiment) Measured(r Row) []string {
	return slices.DeleteFunc(slices.Clone(e.Columns), func(c string) bool { return slices.Contains(r.Lacks, c) })
}

// Questions are what is asked of a row once it is trained, in words: columns, flags of evaluate
// and of sample, how the checkpoint is chosen, curves and numbers of ranks. Numbers that were
// found by others are not mixed in a row.
func (e Experiment) Questions(r Row) []string {
	all := []string{"columns " + strings.Join(slices.Sorted(slices.Values(e.Measured(r))), ",")}
	add := func(what string, flags map[string]string) {
		if len(flags) > 0 {
			all = append(all, what+" "+strings.Join(Flags(flags), " "))
		}
	}
	add("evaluate", e.Evaluate)
	add("sample", e.Sample)
	add("sample --given", e.Between)
	if s := e.Select; s != nil {
		all = append(all, strings.Join(append([]string{fmt.Sprintf("least %s of %d checkpoints", s.Measure, s.Of)}, Flags(s.Evaluate)...), " "))
	}
	for _, c := range e.Curves {
		if !slices.Contains(r.Lacks, c.Name) {
			all = append(all, fmt.Sprintf("curve %s: %s%s every %d", c.Name, c.Measure, c.Loss, c.Every))
		}
	}
	if e.Ranks != nil {
		all = append(all, fmt.Sprintf("ranks %v", e.Ranks))
	}
	return all
}
