package judge

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/stat"
)

// Table is what was measured, by the name of the row.
type Table map[string]Row

// Row is what was measured of a row.
type Row struct {
	Values   map[string]map[uint64]float64 // by measure and seed
	Diverged []uint64                      // seeds whose training ended in numbers that are not finite
}

// Value names a number of a table: a measure of a row.
type Value struct{ Row, Measure string }

func (v Value) String() string { return v.Measure + " of " + v.Row }

// Rows are the values of one measure in several rows.
func Rows(measure string, rows ...string) []Value {
	values := make([]Value, len(rows))
	for i, row := range rows {
		values[i] = Value{row, measure}
	}
	return values
}

// Measures are the values of several measures in one row.
func Measures(row string, measures ...string) []Value {
	values := make([]Value, len(measures))
	for i, m := range measures {
		values[i] = Value{row, m}
	}
	return values
}

// Spread is the mean and the standard deviation of a value over seeds.
type Spread struct {
	N    int
	Mean float64
	SD   float64 // with n − 1; 0 for one seed
}

// Spread is that of v; N is 0 if nothing was measured.
func (t Table) Spread(v Value) Spread { return t.over(v, t.seeds(v)) }

// over is the spread of v over seeds of which it was measured.
func (t Table) over(v Value, seeds []uint64) Spread {
	x := make([]float64, len(seeds))
	for i, seed := range seeds {
		x[i] = t.at(v, seed)
	}
	switch len(x) {
	case 0:
		return Spread{}
	case 1:
		return Spread{N: 1, Mean: x[0]}
	}
	mean, sd := stat.MeanStdDev(x, nil)
	return Spread{N: len(x), Mean: mean, SD: sd}
}

// seeds are those of which v was measured, rising.
func (t Table) seeds(v Value) []uint64 {
	return slices.Sorted(maps.Keys(t[v.Row].Values[v.Measure]))
}

// names are those of the rows, in order.
func (t Table) names() []string { return slices.Sorted(maps.Keys(t)) }

// at is what was measured of v with a seed.
func (t Table) at(v Value, seed uint64) float64 { return t[v.Row].Values[v.Measure][seed] }

// mean is that of v over seeds.
func (t Table) mean(v Value, seeds []uint64) float64 {
	sum := 0.0
	for _, seed := range seeds {
		sum += t.at(v, seed)
	}
	return sum / float64(len(seeds))
}

// common are the seeds of which all values were measured, rising.
func (t Table) common(values []Value) []uint64 {
	return slices.DeleteFunc(t.seeds(values[0]), func(seed uint64) bool {
		return slices.ContainsFunc(values, func(v Value) bool { return !slices.Contains(t.seeds(v), seed) })
	})
}

// digits is a number for reading: five digits that count.
func digits(x float64) string {
	switch size := math.Abs(x); {
	case size != 0 && (size < 1e-4 || size >= 1e6):
		return strconv.FormatFloat(x, 'g', 4, 64)
	case size >= 1e4:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 5, 64), 64) // it was just written
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
