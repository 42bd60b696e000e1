package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
)

// stepTime is the measure that depends on the machine and on the number of threads.
const stepTime = "step-ms"

// Why times of a step are not compared.
const (
	otherMachines = "machines"
	otherThreads  = "numbers of threads"
)

// timed is the table for a check, and which seeds it lacks in words, "" if none: those of
// which the check compares times of a step by different machines or numbers of threads. Where
// an experiment is not done alone, cells of one seed may have had others.
func (s *Sheet) timed(c judge.Check) (judge.Table, string) {
	first, apart := map[uint64]found{}, map[uint64]string{}
	for _, f := range s.finished {
		if !slices.Contains(c.Values(), judge.Value{Row: f.Row, Measure: stepTime}) {
			continue
		}
		one, ok := first[f.Seed]
		switch {
		case !ok:
			first[f.Seed] = f
		case one.status.Measured.Machine != f.status.Measured.Machine:
			apart[f.Seed] = otherMachines
		case apart[f.Seed] == "" && threadsOf(one.status.Begun) != threadsOf(f.status.Begun):
			apart[f.Seed] = otherThreads
		}
	}
	if len(apart) == 0 {
		return s.table, ""
	}
	t := maps.Clone(s.table)
	for _, v := range c.Values() {
		row := t[v.Row]
		row.Values = maps.Clone(row.Values)
		row.Values[stepTime] = maps.Clone(row.Values[stepTime])
		maps.DeleteFunc(row.Values[stepTime], func(seed uint64, _ float64) bool { return apart[seed] != "" })
		t[v.Row] = row
	}
	return t, without(apart)
}

// without says which seeds are not compared, by why.
func without(apart map[uint64]string) string {
	var parts []string
	for _, why := range []string{otherMachines, otherThreads} {
		var seeds []uint64
		for seed, w := range apart {
			if w == why {
				seeds = append(seeds, seed)
			}
		}
		if len(seeds) > 0 {
			slices.Sort(seeds)
			parts = append(parts, fmt.Sprintf("without those of other %s: seed %s", why, strings.Trim(fmt.Sprint(seeds), "[]")))
		}
	}
	return strings.Join(parts, "; ")
}

// threadsOf are the numbers of threads that trained a cell, each once.
func threadsOf(b *cell.Begun) string {
	var all []int
	for _, p := range b.Pieces {
		if p.Program == "train" && !slices.Contains(all, p.Threads) {
			all = append(all, p.Threads)
		}
	}
	slices.Sort(all)
	return fmt.Sprint(all)
}
