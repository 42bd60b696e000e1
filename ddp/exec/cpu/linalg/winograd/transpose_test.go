package winograd

import (
	"slices"
	"testing"
)

// TestTransposition: rows become columns and columns rows, and nothing beside
// them is written.
func TestTransposition(t *testing.T) { each(t, testTransposition) }

func testTransposition(t *testing.T, i *isa) {
	const untouched = -1
	for taps := 4; taps <= 16; taps++ {
		step := taps + 3
		rows := make([]float32, lanes*step)
		for r := range lanes {
			for e := range step {
				if rows[r*step+e] = untouched; e < taps {
					rows[r*step+e] = float32(r*100 + e)
				}
			}
		}
		columns, back := slices.Repeat([]float32{untouched}, 17*lanes), slices.Repeat([]float32{untouched}, len(rows))
		i.toColumns(&columns[0], &rows[0], step, taps)
		for r := range lanes {
			for e := range taps {
				if got, want := columns[e*lanes+r], rows[r*step+e]; got != want {
					t.Fatalf("%d taps: element %d of row %d is %v in its column, want %v", taps, e, r, got, want)
				}
			}
		}
		if i := slices.IndexFunc(columns[16*lanes:], func(v float32) bool { return v != untouched }); i >= 0 {
			t.Fatalf("%d taps: float %d after the columns was written", taps, i)
		}
		i.toRows(&back[0], step, &columns[0], taps)
		if !slices.Equal(back, rows) {
			t.Fatalf("%d taps: rows are\n%v, want\n%v", taps, back, rows)
		}
	}
}
