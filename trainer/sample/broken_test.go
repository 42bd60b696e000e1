package main

import (
	"log/slog"
	"math"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/launch/plainlog"
	"ebtrain/trainer/algo"
)

// Samples that are no numbers are counted: some are said to be, and none but those is an error.
func TestBroken(t *testing.T) {
	points, words := algo.Inputs{Shape: graph.D(3)}, algo.Inputs{Shape: graph.D(1, 1, 3), Words: []string{"a"}}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name          string
		values        []float64
		in            algo.Inputs
		warning, fail string
	}{
		{"numbers", []float64{1, 2, 3, -4, 5, math.MaxFloat32}, points, "", ""},
		{"one of two", []float64{1, 2, 3, 4, nan, nan}, points, "1 of the 2 samples of runs/a after ", ""},
		{"both", []float64{1, inf, 3, 4, 5, -inf}, points, "", "2 of the 2 samples of runs/a after 0 steps come of values that are not finite: training diverged: draw from an earlier checkpoint (--step)"},
		{"sentences", []float64{5, data.End, 0, 5, 6, data.End}, words, "", ""},
		{"a sentence without an end", []float64{5, 6, 7, 5, data.End, 0}, words, "1 of the 2 samples of runs/a after ", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := exec.NewTensor(graph.T(graph.F32, len(c.values)))
			for i, v := range c.values {
				x.SetAt(i, v)
			}
			d, said := toyDrawing(t, options{}), strings.Builder{}
			d.tally.add(x, c.in)
			err := d.tally.tell(d.run, slog.New(plainlog.New("sample", &said)))
			if (err != nil) != (c.fail != "") || err != nil && !strings.HasPrefix(err.Error(), c.fail) {
				t.Errorf("got %v, want %q", err, c.fail)
			}
			if (said.String() != "") != (c.warning != "") || !strings.Contains(said.String(), c.warning) {
				t.Errorf("said %q, want %q", said.String(), c.warning)
			}
		})
	}
}

// Whatever draws samples counts them.
func TestDrawnAreCounted(t *testing.T) {
	for _, o := range []options{{n: 2}, {n: 2, given: pictures, split: "test"}, {n: 1, given: pictures, split: "test", interpolate: 2}, {n: 1, given: pictures, split: "test", interpolate: 2, mirror: 3}} {
		o.stats = "batch"
		d := toyDrawing(t, o)
		if err := d.run.Vars.Set("gauss.mean", full(d, math.NaN())); err != nil {
			t.Fatal(err)
		}
		if _, err := d.draw(t.Context()); err != nil || d.tally != (tally{2, 2}) {
			t.Errorf("%+v: %v, counted %+v", o, err, d.tally)
		}
	}
}

func full(d *drawing, v float64) *exec.Tensor {
	x := exec.NewTensor(graph.T(graph.F32, d.takes.Shape.Len()))
	for i := range d.takes.Shape.Len() {
		x.SetAt(i, v)
	}
	return x
}
