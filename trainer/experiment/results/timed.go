package results

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
)

// stepTime is the measure that depends on the number of threads.
const stepTime = "step-ms"

// timed is the table for a check, and which seeds it lacks in words, "" if none: those of
// which the check compares times of a step by different numbers of threads. Where an
// experiment is not done alone, cells of one seed may have had more than others.
func (s *Sheet) timed(c judge.Check) (judge.Table, string) {
	threads, apart := map[uint64]string{}, map[uint64]bool{}
	for _, f := range s.finished {
		if !slices.Contains(c.Values(), judge.Value{Row: f.Row, Measure: stepTime}) {
			continue
		}
		now := threadsOf(f.status.Begun)
		if before, ok := threads[f.Seed]; ok && before != now {
			apart[f.Seed] = true
		}
		threads[f.Seed] = now
	}
	if len(apart) == 0 {
		return s.table, ""
	}
	t := maps.Clone(s.table)
	for _, v := range c.Values() {
		row := t[v.Row]
		row.Values = maps.Clone(row.Values)
		row.Values[stepTime] = maps.Clone(row.Values[stepTime])
		maps.DeleteFunc(row.Values[stepTime], func(seed uint64, _ float64) bool { return apart[seed] })
		t[v.Row] = row
	}
	seeds := strings.Trim(fmt.Sprint(slices.Sorted(maps.Keys(apart))), "[]")
	return t, "without those of other numbers of threads: seed " + seeds
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
