// Package distance measures how far apart processors are: how long a cache line takes
// from one to another. Threads that share the work of a step pass lines to each other
// all the time, and on a virtual machine the host may have placed its processors
// anywhere: a line has been seen to take six times as long in one hour as in another.
//
// Its threads are its own, and afterwards may run where they might before. Two
// measurements at the same time take processors from each other, but disturb nothing
// else.
package distance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	most   = 8                     // processors that are measured
	atMost = 80 * time.Millisecond // for all pairs; quiet ones take a third of it
)

// Distances are those between the processors that this process may use, one way, in
// nanoseconds. A pair's distance is the shortest that was seen of it, so one who uses
// the processors, too, does not make them farther.
type Distances struct {
	Processors int     // that the process may use
	Measured   int     // of them, evenly spread
	Nearest    float64 // of the pair that is nearest; 0 if nothing was measured
	Farthest   float64 // of the pair that is farthest
	Unmet      int     // pairs that never ran side by side, so busy were they: they do not count
	Missing    string  // why nothing was measured; "" if it was
}

// String is "8, 26 to 160 ns apart", or says what is missing.
func (d Distances) String() string {
	if d.Missing != "" {
		return fmt.Sprintf("%d, not measured how far apart: %s", d.Processors, d.Missing)
	}
	text := fmt.Sprint(d.Processors)
	if d.Measured < d.Processors {
		text = fmt.Sprintf("%d of %d", d.Measured, d.Processors)
	}
	text += ", " + Apart(d.Nearest, d.Farthest)
	if d.Unmet > 0 {
		text += fmt.Sprintf(" (%d pair(s) never ran side by side)", d.Unmet)
	}
	return text
}

// Apart is "26 to 160 ns apart", or "26 ns apart".
func Apart(nearest, farthest float64) string {
	near, far := fmt.Sprintf("%.0f", nearest), fmt.Sprintf("%.0f", farthest)
	if near == far {
		return near + " ns apart"
	}
	return near + " to " + far + " ns apart"
}

// Measure measures each pair of the processors that the calling thread may run on, or of
// eight of them. It takes 80 ms at most, and 2 ms for a pair of two idle ones. What the
// system does not let it do is told in Missing; the only error is ctx's.
func Measure(ctx context.Context) (Distances, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return Distances{Missing: fmt.Sprintf("which processors this process may use: %v", err)}, context.Cause(ctx)
	}
	cpus := processors(&allowed)
	some := spread(cpus, most)
	d := Distances{Processors: len(cpus), Measured: len(some)}
	if len(cpus) < 2 || runtime.GOMAXPROCS(0) < 2 {
		d.Missing = "no two can run at a time"
		return d, context.Cause(ctx)
	}
	pairs := pairsOf(some)
	seen := make([]float64, len(pairs))
	end := time.Now().Add(atMost)
	for i, p := range pairs {
		share := time.Until(end) / time.Duration(len(pairs)-i)
		var err error
		if seen[i], err = pair(ctx, p, time.Now().Add(share)); err != nil {
			d.Missing = err.Error()
		}
		if d.Missing != "" || ctx.Err() != nil {
			return d, context.Cause(ctx)
		}
	}
	d.of(seen)
	return d, nil
}

// of fills in what the distances of all pairs say; 0 is one that is not known.
func (d *Distances) of(pairs []float64) {
	known := slices.DeleteFunc(pairs, func(ns float64) bool { return ns == 0 })
	if d.Unmet = len(pairs) - len(known); len(known) == 0 {
		d.Missing = "no two ever ran side by side, so busy were they"
		return
	}
	d.Nearest, d.Farthest = slices.Min(known), slices.Max(known)
}

// And is what both looks at the same processors say. The host of a virtual machine may have
// moved them between the two.
func (d Distances) And(later Distances) Distances {
	switch {
	case later.Missing != "":
		return d
	case d.Missing != "":
		return later
	}
	d.Nearest, d.Farthest = min(d.Nearest, later.Nearest), max(d.Farthest, later.Farthest)
	d.Unmet = min(d.Unmet, later.Unmet)
	return d
}

// processors are the numbers of those in the set, in order.
func processors(set *unix.CPUSet) (cpus []int) {
	for cpu, left := 0, set.Count(); left > 0; cpu++ {
		if set.IsSet(cpu) {
			cpus, left = append(cpus, cpu), left-1
		}
	}
	return cpus
}

// spread is n of cpus from the first to the last, evenly, or all if they are no more.
func spread(cpus []int, n int) []int {
	if len(cpus) <= n {
		return cpus
	}
	some := make([]int, n)
	for i := range some {
		some[i] = cpus[i*(len(cpus)-1)/(n-1)]
	}
	return some
}

func pairsOf(cpus []int) (pairs [][2]int) {
	for i, a := range cpus {
		for _, b := range cpus[i+1:] {
			pairs = append(pairs, [2]int{a, b})
		}
	}
	return pairs
}
