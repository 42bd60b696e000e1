package main

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/stepbench/distance"
	"ebtrain/trainer/stepbench/flops"
)

// Which samples count: the quiet ones, or the quietest where there are few.
func TestUsed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		others []float64
		want   int   // quiet ones asked for
		used   []int // indices
	}{
		{"all quiet", []float64{0, 0.01, 0.02}, 3, []int{0, 1, 2}},
		{"enough quiet", []float64{0.5, 0, 0.9, 0.01, 0.05}, 3, []int{1, 3, 4}},
		{"one was asked for and is there", []float64{0.5, 0.01}, 1, []int{1}},
		{"two quiet of three asked for: the 3 quietest", []float64{0.5, 0.4, 0, 0.3, 0.01}, 3, []int{2, 4, 3}},
		{"none quiet of sixteen: the quietest quarter", []float64{.9, .8, .9, .9, .7, .9, .9, .9, .9, .9, .6, .9, .9, .9, .5, .9}, 10, []int{14, 10, 4, 1}},
		{"two samples, none quiet", []float64{0.5, 0.6}, 10, []int{0, 1}},
	} {
		s := &samples{limit: 0.08, want: tt.want}
		for i, o := range tt.others {
			s.all = append(s.all, sample{step: float64(i), other: o})
		}
		var got []int
		for _, x := range s.used() {
			got = append(got, int(x.step))
		}
		slices.Sort(got)
		slices.Sort(tt.used)
		if !slices.Equal(got, tt.used) {
			t.Errorf("%s: samples %v count, want %v", tt.name, got, tt.used)
		}
	}
}

func TestTimes(t *testing.T) {
	r := &result{Global: 10, Peak: 8, work: flops.Count{flops.Conv: 1e9}}
	r.times([]sample{{0.2, 0}, {0.1, 0.5}, {0.4, 0.1}})
	if r.StepMS != 200 || r.MinMS != 100 || r.MaxMS != 400 || r.ImgS != 50 || r.ImgSBest != 100 || r.GFLOPS != 5 || r.GFlopImg != 0.1 || r.PeakShare != 0.625 || r.OtherCPU != 0.1 {
		t.Errorf("got %+v", r)
	}
}

// The report says how far apart the processors were, or nothing at all.
func TestApart(t *testing.T) {
	r := &result{}
	r.apart(distance.Distances{Processors: 3, Measured: 3, Nearest: 26.44, Farthest: 160.07})
	if r.Processors != 3 || !slices.Equal(r.LineNS, []float64{26.4, 160.1}) || r.distances != "3, 26 to 160 ns apart" {
		t.Errorf("got %d, %v, %q", r.Processors, r.LineNS, r.distances)
	}
	r = &result{}
	if r.apart(distance.Distances{Processors: 1, Missing: "why"}); r.Processors != 1 || r.LineNS != nil || !strings.Contains(r.distances, "why") {
		t.Errorf("got %d, %v, %q; want no distance of one", r.Processors, r.LineNS, r.distances)
	}
}

func TestProcFile(t *testing.T) {
	n, err := processTicks("42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 110 1200 13 14")
	if n != 110+1200 || err != nil {
		t.Errorf("ours %d, %v; want %d", n, err, 110+1200)
	}
	for _, bad := range []string{"", "1 (a) S 1", "1 S 1 2 3 4 5 6 7 8 9 10 11 12 13"} {
		if _, err := processTicks(bad); err == nil {
			t.Errorf("/proc/PID/stat %q gives no error", bad)
		}
	}
}

// This process's own work is not the work of others: who does not know it for its own
// finds that the others have done more.
func TestLoad(t *testing.T) {
	known, unknown := cpuLoad{pids: []int{os.Getpid()}, cores: 1}, cpuLoad{cores: 1}
	if err := errors.Join(unknown.start(), known.start()); err != nil {
		t.Fatal(err)
	}
	const work = time.Second / 2 // many times what passes between one look and the other
	for began, done := time.Now(), time.Duration(0); done < work; {
		_, ours, err := known.worked()
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("this process has worked for %v in %v, %v", done, time.Since(began), err)
		}
		done = ours - known.ours
	}
	others, err1 := known.stop()
	all, err2 := unknown.stop()
	if err1 != nil || err2 != nil || others < 0 || all <= others {
		t.Errorf("others had %v of a core, with this process %v (%v, %v)", others, all, err1, err2)
	}
}

// The pool stays in its range, and samples of other ranks are other samples.
func TestPool(t *testing.T) {
	in := exec.NewTensor(graph.T(graph.F32, 2, 3, 4, 4))
	a, b, other := newPool(in, -1, 1, 0), newPool(in, -1, 1, 0), newPool(in, -1, 1, 8)
	if !slices.Equal(a.data, b.data) || slices.Equal(a.data, other.data) {
		t.Error("pools of one seed must be equal, those of other samples must not")
	}
	dst := make([]float32, a.batch)
	var first []float32
	for i := range poolBatches + 1 {
		a.fill(dst)
		for _, v := range dst {
			if v < -1 || v > 1 || math.IsNaN(float64(v)) {
				t.Fatalf("batch %d holds %v, want -1 to 1", i, v)
			}
		}
		if i == 0 {
			first = slices.Clone(dst)
		}
	}
	if !slices.Equal(first, dst) {
		t.Error("the pool does not come round")
	}
}
