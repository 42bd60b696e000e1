package main

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/launch/progressbar"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
)

// givenToy judges samples of a toy with given latents, which are the pictures that the
// latents are of, but for a little noise.
func givenToy(t *testing.T) *evaluation {
	t.Helper()
	e := comparingToy(t)
	e.o.data, e.o.latents, e.o.samples, e.o.batch = figures, true, 45, 8
	return e
}

// mustDraw are the samples, and what is said of them.
func mustDraw(t *testing.T, e *evaluation) (x []float32, note string) {
	t.Helper()
	s, note, err := e.makers()[setSamples](t.Context(), pictures{})
	if err != nil || len(s.X) != e.o.samples*e.takes.Shape.Len() {
		t.Fatal(len(s.X), err)
	}
	return s.X, note
}

// nearest are, for each sample, the number of the nearest training picture, and how far
// any value is from it at most.
func nearest(t *testing.T, x []float32) (of []int, far float64) {
	t.Helper()
	real := read(t, "train").X
	for one := range slices.Chunk(x, 192) {
		best, at := math.Inf(1), 0
		for i := 0; i < len(real); i += 192 {
			d := 0.0
			for j, v := range one {
				d = max(d, math.Abs(float64(v-real[i+j])))
			}
			if d < best {
				best, at = d, i/192
			}
		}
		of, far = append(of, at), max(far, best)
	}
	return of, far
}

// A sample with given latents is that of a training picture, which its number and the seed
// choose, however many are drawn at a time; without them samples are the model's own.
func TestGivenLatents(t *testing.T) {
	e := givenToy(t)
	e.smooth(t)
	x, note := mustDraw(t, e)
	if want := "samples have the latents of random pictures of " + figures + "/train (--given)"; note != want {
		t.Errorf("it says %q, want %q", note, want)
	}
	of, far := nearest(t, x)
	if far > 0.02 {
		t.Errorf("a value is %v from the nearest picture's", far)
	}
	if distinct := slices.Compact(slices.Sorted(slices.Values(of))); len(distinct) < 35 || slices.IsSorted(of) || distinct[0] > 50 || distinct[len(distinct)-1] < 350 {
		t.Errorf("45 samples of 400 pictures are of %v", of)
	}
	e.o.batch, e.o.samples = 20, 30
	fewer, _ := mustDraw(t, e)
	if again, _ := nearest(t, fewer); !slices.Equal(again, of[:30]) {
		t.Errorf("fewer samples, more at a time, are of %v, want %v", again, of[:30])
	}
	e.o.seed++
	other, _ := mustDraw(t, e)
	if again, _ := nearest(t, other); slices.Equal(again, of[:30]) {
		t.Error("two seeds choose the same pictures")
	}
	e.o.latents = false
	own, note := mustDraw(t, e)
	if _, far := nearest(t, own); far < 0.5 || note != "" {
		t.Errorf("the model's own samples are %v from pictures, %q", far, note)
	}
}

// smooth makes the toy's noise small: its standard deviation is 1 for all values.
func (e *evaluation) smooth(t *testing.T) {
	t.Helper()
	sd, err := e.trained.Vars.Get("gauss.log_sd")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 192 {
		sd.SetAt(i, 0)
	}
	if err := e.trained.Vars.Set("gauss.log_sd", sd); err != nil {
		t.Fatal(err)
	}
}

// Two ranks draw what one does.
func TestGivenLatentsOfRanks(t *testing.T) {
	want, _ := mustDraw(t, givenToy(t))
	comms, err := host.NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	got, errs := make([][]float32, 2), make([]error, 2)
	var wait sync.WaitGroup
	for r, comm := range comms {
		e := givenToy(t)
		e.comm, e.show = comm, progressbar.NewPhases(new(strings.Builder))
		wait.Go(func() {
			s, _, err := e.drawnGiven(t.Context())
			got[r], errs[r] = s.X, err
		})
	}
	wait.Wait()
	for r, comm := range comms {
		if err := comm.Close(); err != nil || errs[r] != nil {
			t.Fatal(err, errs[r])
		}
		if !slices.Equal(got[r], want) {
			t.Errorf("rank %d draws other samples than one alone", r)
		}
	}
}

// A model that cannot draw so is refused, in a sentence, before anything is measured.
func TestGivenLatentsRefused(t *testing.T) {
	e := givenToy(t)
	e.log, e.o.measures, e.o.typed = slog.New(slog.DiscardHandler), "kid", []string{"given"}
	e.trained.Settings.Algo = "toy"
	e.trained.Model = struct {
		algo.Model
		algo.Sampler
	}{e.trained.Model, e.trained.Model.(toy.Config)}
	const want = "the model of runs/a, of --algo toy, does not draw samples with given latents: leave --given out"
	if _, err := e.measure(t.Context()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
