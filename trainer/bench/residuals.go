package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"ebtrain/collective/cost"
)

// residuals prints how far the measured times of collectives are from the model's, for
// each group of ranks and each size; of times before the steps and after them the mean.
func (p *printer) residuals(all []cost.Residual) {
	if len(all) == 0 {
		return
	}
	var sizes []int
	var groups []string // in the order in which they were measured
	off := map[string]map[int][]float64{}
	for _, r := range all {
		g := ranksOn(r.Ranks)
		if off[g] == nil {
			off[g] = map[int][]float64{}
			groups = append(groups, g)
		}
		off[g][r.Bytes] = append(off[g][r.Bytes], r.Relative())
		sizes = append(sizes, r.Bytes)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	head := "measured over the model, less 1, in %"
	for _, n := range sizes {
		head += "\t" + humanize.IBytes(uint64(n))
	}
	rows := []string{head}
	for _, g := range groups {
		row := g
		for _, n := range sizes {
			row += "\t" + percent(off[g][n])
		}
		rows = append(rows, row)
	}
	p.table(rows)
}

// ranksOn is "ranks on hosts 2+2".
func ranksOn(hosts []int) string {
	text := strings.ReplaceAll(strings.Trim(fmt.Sprint(hosts), "[]"), " ", "+")
	if len(hosts) == 1 {
		return text + " ranks on a host"
	}
	return text + " ranks on hosts"
}

// percent is the mean of shares, in percent.
func percent(v []float64) string {
	if len(v) == 0 {
		return "-"
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return fmt.Sprintf("%+.0f", 100*sum/float64(len(v)))
}
