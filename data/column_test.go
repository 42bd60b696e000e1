package data

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"ebtrain/data/safetensors"
)

// What a value was in a table is written in as many digits as the value tells: so what has
// few digits comes back as it was.
func TestColumnText(t *testing.T) {
	for _, tt := range []struct {
		c Column
		x float64
		s string
	}{
		{Column{Mean: 1.7e9, SD: 1021.14}, 1700001058, "1700001058"}, {Column{Mean: 5.99, SD: 0.89}, 5.52, "5.52"}, {Column{Mean: 5, SD: 3}, 5, "5"},
		{Column{Mean: 1e-9, SD: 1e-10}, 1.25e-9, "1.25e-09"}, {Column{Mean: 3, SD: 2}, 0, "0"}, {Column{Mean: 1, SD: 1}, -1000.5, "-1000.5"},
		{Column{SD: 1}, 0.1, "0.1"}, {Column{SD: 1}, 16777216, "1.6777216e+07"}, {Column{Mean: 1e6, SD: 1}, 1e6, "1000000"},
	} {
		v := float32(tt.c.Scaled(tt.x))
		got := tt.c.Text(v)
		if tt.x == 0 { // which the value cannot tell from a little more
			n, err := strconv.ParseFloat(got, 64)
			if err != nil || !(math.Abs(n) <= 1e-6) {
				t.Errorf("%+v: %v is written %s", tt.c, tt.x, got)
			}
			continue
		}
		want, err := strconv.ParseFloat(tt.s, 64)
		if n, err2 := strconv.ParseFloat(got, 64); err != nil || err2 != nil || n != want || len(got) > len(tt.s)+4 {
			t.Errorf("%+v: %v is written %s, want %s", tt.c, tt.x, got, tt.s)
		}
	}
}

func TestSchemaOfColumns(t *testing.T) {
	schema := func(columns ...Column) Schema {
		return Schema{C: 1, H: 1, W: 2, DType: safetensors.F32, Columns: columns}
	}
	if err := schema(Column{"a", 3, 2}, Column{"b", 0, 1}).Validate(); err != nil {
		t.Error(err)
	}
	for want, s := range map[string]Schema{
		"1 columns of samples of 1×1×2 F32, expected 1×1×1 F32": schema(Column{"a", 0, 1}),
		`columns 0 and 1 are both called "a"`:                   schema(Column{"a", 0, 1}, Column{"a", 0, 1}),
		`column 1 is called "", expected text in UTF-8`:         schema(Column{"a", 0, 1}, Column{"", 0, 1}),
		`column 0 is called "\xe9"`:                             schema(Column{"\xe9", 0, 1}, Column{"b", 0, 1}),
		`column "b" has the mean 0 and the deviation 0`:         schema(Column{"a", 0, 1}, Column{"b", 0, 0}),
		`column "b" has the mean NaN`:                           schema(Column{"a", 0, 1}, Column{"b", math.NaN(), 1}),
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
