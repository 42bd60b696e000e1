package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// table prints, of each column and run, where it began and where it is: the last line, and
// the mean of the last tenth of them, since one step says little.
func table(w io.Writer, runs []history, columns []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := []string{"column\trun\tsteps\tfirst\tleast\tof step\tlast\tlast tenth\tno number"}
	for _, name := range columns {
		for _, h := range runs {
			if row := h.row(name); row != "" {
				rows = append(rows, row)
			}
		}
	}
	if _, err := fmt.Fprintln(t, strings.Join(rows, "\n")); err != nil {
		return err
	}
	return t.Flush()
}

// row is a column of a run; nothing if it has not logged it.
func (h history) row(name string) string {
	x, y, none := h.column(name, steps)
	if len(y) == 0 && none == 0 {
		return ""
	}
	row := fmt.Sprintf("%s\t%s\t%d-%d", name, h.name, h.records[0].Step, h.records[len(h.records)-1].Step)
	if len(y) == 0 {
		return fmt.Sprintf("%s\t\t\t\t\t\t%d", row, none)
	}
	at := slices.Index(y, slices.Min(y))
	tenth := y[len(y)-max(1, len(y)/10):]
	row += fmt.Sprintf("\t%s\t%s\t%.0f\t%s\t%s", number(y[0]), number(y[at]), x[at], number(y[len(y)-1]), number(mean(tenth)))
	if none > 0 {
		row += fmt.Sprintf("\t%d", none)
	}
	return row
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
