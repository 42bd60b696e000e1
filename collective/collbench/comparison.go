package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebtrain/collective/cost"
	"ebtrain/collective/processors"
	"ebtrain/launch/cliflag"
)

// comparison is what was measured of one size.
type comparison struct {
	bytes  int
	runs   [][]cost.Size // of each contender, in the order of contenders, its rounds
	others float64       // processors that other programs used meanwhile
}

// compareHead is everything above the rows.
func compareHead(w io.Writer, opt options, all []contender) error {
	where := "in shared memory (gloo over TCP on loopback, all that it has)"
	switch {
	case opt.spaces:
		where = "on a host each, made of namespaces, over TCP on virtual links and a switch"
	case opt.apart:
		where = "over TCP on loopback"
	}
	text := fmt.Sprintf("## %s, %d ranks %s, %s\n\n%d processors, load %.1f; %d rounds of %v each in turn, equal priority. In µs: shortest, and median of the rounds' medians.\n\n",
		time.Now().UTC().Format("2006-01-02 15:04"), opt.nproc, where, cliflag.Version("collbench"), runtime.NumCPU(), processors.Load(), opt.rounds, opt.maxTime)
	cols := []string{"bytes"}
	for _, c := range all {
		cols = append(cols, c.name)
	}
	cols = append(cols, "OpenMPI / ours", "OpenMPI / ordinary", "gloo / ours", "floor share", "least share", "stream share", "others")
	_, err := fmt.Fprintf(w, "%s| %s |\n%s|\n", text, strings.Join(cols, " | "), strings.Repeat("|---", len(cols)))
	return err
}

// row is the line of a size. Ratios are of the medians; a share is the median of
// those of the rounds, each measured between the all-reduces of its round.
func (c comparison) row() string {
	cells := []string{strconv.Itoa(c.bytes)}
	var medians []float64
	for _, runs := range c.runs {
		best := math.Inf(1)
		for _, s := range runs {
			best = min(best, s.Best)
		}
		m := median(runs, func(s cost.Size) float64 { return s.Median })
		medians = append(medians, m)
		cells = append(cells, micros(best)+" · "+micros(m))
	}
	for _, pair := range [][2]int{{2, 0}, {2, 1}, {3, 0}} {
		cells = append(cells, fmt.Sprintf("%.2f", medians[pair[0]]/medians[pair[1]]))
	}
	for _, share := range []func(cost.Size) float64{
		func(s cost.Size) float64 { return s.FloorShare }, func(s cost.Size) float64 { return s.LeastShare },
		func(s cost.Size) float64 { return s.StreamShare },
	} {
		x := median(c.runs[0], share)
		if x == 0 { // there is none
			cells = append(cells, "")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.2f", x))
	}
	return fmt.Sprintf("| %s | %.1f |\n", strings.Join(cells, " | "), c.others)
}

func median(runs []cost.Size, of func(cost.Size) float64) float64 {
	var xs []float64
	for _, s := range runs {
		xs = append(xs, of(s))
	}
	slices.Sort(xs)
	if n := len(xs); n%2 == 0 {
		return (xs[n/2-1] + xs[n/2]) / 2
	}
	return xs[len(xs)/2]
}

// micros is so many µs, with as many digits as mean something.
func micros(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 0, 64)
}
