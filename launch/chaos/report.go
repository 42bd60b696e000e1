package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ebtrain/launch/cliflag"
)

// report collects what came of all trials.
type report struct {
	o      options
	begun  time.Time
	load   string // at the begin
	trials []*tried
	stray  string // what is left of the hosts
	cut    string // what is not in the table because of an interruption
}

// tried is one trial, made some times.
type tried struct {
	trial
	results []*result
}

func newReport(o options) *report { return &report{o: o, begun: time.Now().UTC(), load: load()} }

func (r *report) add(t trial, what *result) {
	i := slices.IndexFunc(r.trials, func(k *tried) bool { return k.name == t.name })
	if i < 0 {
		i = len(r.trials)
		r.trials = append(r.trials, &tried{trial: t})
	}
	r.trials[i].results = append(r.trials[i].results, what)
}

// bad are the trials that went otherwise than they must.
func (r *report) bad() (names []string) {
	for _, t := range r.trials {
		if slices.ContainsFunc(t.results, func(k *result) bool { return len(k.wrong)+len(k.left) > 0 }) {
			names = append(names, t.name)
		}
	}
	if r.stray != "" {
		names = append(names, "the hosts themselves")
	}
	return names
}

// String is the table, and what was not as it must be.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s, %d hosts of %d ranks, %s\n\n", r.begun.Format("2006-01-02 15:04"), r.o.hosts, r.o.nproc, cliflag.Version("chaos"))
	fmt.Fprintf(&b, "%d processors; load at the begin %s, at the end %s. Times in seconds, from the deed on.\n\n", runtime.NumCPU(), r.load, load())
	b.WriteString("| trial | what is timed | times | median | worst | bar | over it | exits | right | leftovers |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, t := range r.trials {
		exits, right, left := t.summary()
		name := fmt.Sprintf("%s: %s", t.name, t.what)
		for _, row := range t.rows() {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", name, row, exits, right, left)
			name, exits, right, left = "", "", "", "" // said once
		}
	}
	if r.cut != "" {
		b.WriteString("\n" + r.cut + "\n")
	}
	if wrong := r.wrong(); len(wrong) > 0 {
		b.WriteString("\nNot as it must be:\n\n")
		for _, n := range wrong {
			fmt.Fprintf(&b, "- %s\n", strings.ReplaceAll(n, "\n", "\n  "))
		}
	}
	for _, t := range r.trials {
		for _, k := range t.results {
			if k.notes != "" {
				b.WriteString("\n" + k.notes)
			}
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// wrong is what was not as it must be, with its trial.
func (r *report) wrong() (all []string) {
	for _, t := range r.trials {
		for i, k := range t.results {
			for _, what := range slices.Concat(k.wrong, k.left) {
				all = append(all, fmt.Sprintf("%s, time %d: %s", t.name, i+1, what))
			}
		}
	}
	if r.stray != "" {
		all = append(all, r.stray)
	}
	return all
}

// rows are the cells of what was timed, a row for each.
func (t *tried) rows() (rows []string) {
	var names []string
	for _, k := range t.results {
		for _, m := range k.times {
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
		}
	}
	for _, name := range names {
		var all []time.Duration
		var bar time.Duration
		for _, k := range t.results {
			for _, m := range k.times {
				if m.name == name {
					all, bar = append(all, m.took), m.bar
				}
			}
		}
		slices.Sort(all)
		limit, over := "", ""
		if bar > 0 {
			limit = fmt.Sprintf("%.2f", bar.Seconds())
			over = fmt.Sprint(len(slices.DeleteFunc(slices.Clone(all), func(d time.Duration) bool { return d <= bar })))
		}
		rows = append(rows, fmt.Sprintf("%s | %d | %.3f | %.3f | %s | %s", name, len(all), all[len(all)/2].Seconds(), all[len(all)-1].Seconds(), limit, over))
	}
	if rows == nil {
		rows = []string{fmt.Sprintf(" | %d |  |  |  | ", len(t.results))}
	}
	return rows
}

// summary is the exit codes, how often all was right, and how much was left.
func (t *tried) summary() (exits, right, left string) {
	var codes []int
	good, n := 0, 0
	for _, k := range t.results {
		codes = append(codes, k.exits...)
		n += len(k.left)
		if len(k.wrong) == 0 {
			good++
		}
	}
	slices.Sort(codes)
	codes = slices.Compact(codes)
	return strings.Trim(fmt.Sprint(codes), "[]"), fmt.Sprintf("%d of %d", good, len(t.results)), fmt.Sprint(n)
}

// load is the machine's load of the last minute.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(b), " ")
	return first
}
