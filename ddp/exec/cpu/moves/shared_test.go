package moves

import (
	"math"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// Threads that do parts of a job at the same time have each a memory of their own: here
// neither writes its result before both have it in hand.
func TestThreadsKeepTheirOwn(t *testing.T) {
	team := threads.NewTeam(2)
	defer team.Close()
	jobs := threads.NewJobs(team, 0)
	key := exec.NewTensor(graph.KeyType)
	copy(key.I64(), []int64{7, 1, 3})
	numbers := func(dims ...int) *exec.Tensor {
		x := exec.NewTensor(graph.T(graph.F64, dims...))
		for i := range x.Type.Shape.Len() {
			x.SetAt(i, float64(i)+0.5)
		}
		return x
	}
	draws := func(y array.Place, meet func()) threads.Job {
		d := newDraw(jobs, graph.Draw{Dist: graph.Uniform}, placeOf(key), y).(*draw)
		write := d.write
		d.write = func(dst unsafe.Pointer, at int, src []float64) { meet(); write(dst, at, src) }
		return d
	}
	for name, tt := range map[string]struct {
		dims []int // each part writes once
		make func(y array.Place, meet func()) threads.Job
	}{
		"cast": {[]int{2 * castBlock}, func(y array.Place, meet func()) threads.Job {
			c := castBy[float64](jobs, placeOf(numbers(2*castBlock)), y).(*cast[float64])
			write := c.write
			c.write = func(dst unsafe.Pointer, at int, src []float64) { meet(); write(dst, at, src) }
			return c
		}},
		"draws of long rows":  {[]int{2, 200}, draws},
		"draws of short rows": {[]int{2, 5}, draws},
		"pool": {[]int{1, 2, 4, 3}, func(y array.Place, meet func()) threads.Job {
			one := graph.Window{KH: 1, KW: 1, StrideH: 1, StrideW: 1, DilH: 1, DilW: 1}
			k, err := newImage(jobs, func(y []float64, from []source[float64], p pixels) { meet(); mix(y, from, p) },
				graph.SumPool2D{Window: one}, []array.Place{placeOf(numbers(1, 2, 4, 3))}, []array.Place{y})
			if err != nil {
				t.Fatal(err)
			}
			return k.(threads.Job)
		}},
	} {
		want, got := exec.NewTensor(graph.T(graph.F64, tt.dims...)), exec.NewTensor(graph.T(graph.F64, tt.dims...))
		tt.make(placeOf(want), func() {}).Part(0, 0, 1)
		var both, done sync.WaitGroup
		both.Add(2)
		job := tt.make(placeOf(got), func() { both.Done(); both.Wait() })
		for w := range 2 {
			done.Go(func() { job.Part(w, w, 2) })
		}
		done.Wait()
		if !slices.Equal(numbersOf(got), numbersOf(want)) {
			t.Errorf("%s: two threads make %v, one %v", name, numbersOf(got), numbersOf(want))
		}
	}
}

// Constants and ramps fill what is theirs, and nothing behind it: here a few and several
// blocks, the last one short.
func TestFillsEndWhereTheyEnd(t *testing.T) {
	for _, n := range []int{0, 1, 3, castBlock, castBlock + 1, 3*castBlock - 1} {
		for op, of := range map[any]func(i int) float64{
			plan.Fill{Value: 5}:                     func(int) float64 { return 5 },
			graph.Iota{Type: graph.T(graph.F32, n)}: func(i int) float64 { return float64(i) },
		} {
			y := exec.NewTensor(graph.T(graph.F32, n+8))
			for i := range n + 8 {
				y.SetAt(i, -1)
			}
			place := placeOf(y)
			place.Dims = graph.D(n)
			k, err := New(nil, op, nil, []array.Place{place})
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Run(); err != nil {
				t.Fatal(err)
			}
			for i, v := range numbersOf(y) {
				if i < n && v != of(i) || i >= n && v != -1 {
					t.Fatalf("%v of %d: %v at %d", op, n, v, i)
				}
			}
		}
	}
}

// A row that is drawn in several pieces is the stream of its sample from its beginning on.
func TestDrawsOfLongRows(t *testing.T) {
	key := exec.NewTensor(graph.KeyType)
	copy(key.I64(), []int64{7, 1, 3})
	for _, dt := range []graph.DType{graph.F32, graph.F64} {
		y := exec.NewTensor(graph.T(dt, 2, 3*drawn-5))
		do(t, graph.Draw{Dist: graph.Uniform, Purpose: 9, Sub: 2}, y, key)
		for r := range 2 {
			row := make([]float64, 3*drawn-5)
			philox.Name{Seed: 7, Step: 1, Sample: uint32(3 + r), Purpose: 9, Sub: 2}.UniformFrom(row, 0)
			for i, want := range row {
				if got := y.At(r*len(row) + i); !(math.Abs(got-want) <= 1e-6) {
					t.Fatalf("%v, row %d: %v at %d, want %v", dt, r, got, i, want)
				}
			}
		}
	}
}
