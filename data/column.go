package data

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"ebtrain/data/safetensors"
)

// Column says what one of the values of a sample is that is the row of a table: what the
// table calls it, and how it was scaled.
type Column struct {
	Name string `json:"name"`
	// The value is (x − Mean)/SD of the table's x: x itself for 0 and 1.
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"` // above 0
}

// Scaled is the value that the table's x becomes.
func (c Column) Scaled(x float64) float64 { return (x - c.Mean) / c.SD }

// Original is the table's x that became v.
func (c Column) Original(v float32) float64 { return float64(v)*c.SD + c.Mean }

// Text is the table's x that became v, in as many digits as v tells.
func (c Column) Text(v float32) string {
	if c.Mean == 0 && c.SD == 1 {
		return strconv.FormatFloat(float64(v), 'g', -1, 32)
	}
	const bits = 24 // of a float32
	x := c.Original(v)
	step := c.SD * max(math.Abs(float64(v)), 1) / (1 << bits) // what v may be off by, about
	digits := math.Floor(math.Log10(math.Abs(x))) - math.Ceil(math.Log10(step)) + 1
	if !(digits >= 1) { // as of 0
		digits = 1
	}
	return strconv.FormatFloat(x, 'g', int(min(digits, 17)), 64)
}

// Scaled says whether any of the columns is not as the table has it.
func Scaled(columns []Column) bool {
	for _, c := range columns {
		if c.Mean != 0 || c.SD != 1 {
			return true
		}
	}
	return false
}

// checkColumns reports columns that are not those of the schema's samples.
func (s Schema) checkColumns() error {
	if s.Columns == nil {
		return nil
	}
	if s.C != 1 || s.H != 1 || s.W != len(s.Columns) || s.DType != safetensors.F32 {
		return fmt.Errorf("%d columns of samples of %v, expected 1×1×%d F32", len(s.Columns), s, len(s.Columns))
	}
	seen := make(map[string]int, len(s.Columns))
	for i, c := range s.Columns {
		if !utf8.ValidString(c.Name) || c.Name == "" {
			return fmt.Errorf("column %d is called %q, expected text in UTF-8", i, c.Name)
		}
		if j, twice := seen[c.Name]; twice {
			return fmt.Errorf("columns %d and %d are both called %q", j, i, c.Name)
		}
		seen[c.Name] = i
		if !(c.SD > 0) || math.IsInf(c.SD, 0) || math.IsNaN(c.Mean) || math.IsInf(c.Mean, 0) {
			return fmt.Errorf("column %q has the mean %v and the deviation %v, expected numbers, the latter above 0", c.Name, c.Mean, c.SD)
		}
	}
	return nil
}
