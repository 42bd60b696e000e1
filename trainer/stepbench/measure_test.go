package main

import (
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ebtrain/collective/processors"
	"ebtrain/data"
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
	on, err := processors.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	known, unknown := cpuLoad{pids: []int{os.Getpid()}, on: on}, cpuLoad{on: on}
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
		t.Errorf("others had %v of the processors, with this process %v (%v, %v)", others, all, err1, err2)
	}
}

// Of one processor others take no more than all of it, whatever runs on the rest.
func TestLoadOfOne(t *testing.T) {
	all, err := processors.Allowed()
	if err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	l := cpuLoad{on: processors.Of(cpu)}
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range all.Count() {
		wait.Go(func() {
			for end := l.began.Add(time.Second / 2); time.Now().Before(end); {
			}
		})
	}
	wait.Wait()
	if others, err := l.stop(); err != nil || others > 1.3 { // in hundredths of a second, of six kinds of work
		t.Errorf("others had %v of one processor, %v", others, err)
	}
}

// The time of a kind of op is of one step, and its rate of that time: what was there before the
// samples is no part of it.
func TestPerOp(t *testing.T) {
	before := exec.Stats{Ops: map[string]exec.OpStats{"conv2d": {Calls: 10, Time: time.Second, Flops: 7e9}}}
	after := exec.Stats{Ops: map[string]exec.OpStats{"conv2d": {Calls: 30, Time: 3 * time.Second, Flops: 17e9}, "add": {Calls: 5, Time: time.Millisecond}}}
	ops := perOp(before, after, 5)
	if c := ops["conv2d"]; c.Calls != 4 || !(math.Abs(c.MS-400) <= 1e-9) || !(math.Abs(c.GFLOPS-5) <= 1e-9) {
		t.Errorf("20 calls, 2 s and 10 GFLOP in 5 steps are %+v", c)
	}
	if a := ops["add"]; a.Calls != 1 || !(math.Abs(a.MS-0.2) <= 1e-9) || a.GFLOPS != 0 {
		t.Errorf("5 calls and 1 ms in 5 steps are %+v", a)
	}
}

// What is allocated is counted within intervals, of all of them together.
func TestMemory(t *testing.T) {
	var m memory
	var keep []*[64]byte
	for range 2 {
		if err := m.start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			keep = append(keep, new([64]byte))
		}
		if err := m.stop(); err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			keep = append(keep, new([64]byte))
		}
	}
	if m.objects < 2000 || m.objects > 5000 || m.first <= 0 || m.last <= 0 || len(keep) != 22_000 {
		t.Errorf("%d objects, want 2,000 and a few; from %d to %d bytes", m.objects, m.first, m.last)
	}
}

// Sentences are whole: a begin, words of the vocabulary that are not reserved, and an end,
// as long as can be, and other ones for each rank; after four batches they come round.
func TestSentences(t *testing.T) {
	const n, l, words = 3, 6, 12
	tokens, lengths := exec.NewTensor(graph.T(graph.I32, n, l)), exec.NewTensor(graph.T(graph.I32, n))
	s, other := newSentences(tokens, words, 1, 0), newSentences(tokens, words, 1, poolBatches*n)
	if slices.Equal(s.data, other.data) {
		t.Error("two ranks have the same sentences")
	}
	var batches [][]int32
	for range poolBatches + 1 {
		s.fill(tokens, lengths)
		batches = append(batches, slices.Clone(tokens.I32()))
		for i := range n {
			row := tokens.I32()[i*l : (i+1)*l]
			inner := row[1 : l-1]
			if row[0] != data.Begin || row[l-1] != data.End || slices.Min(inner) < data.Reserved || slices.Max(inner) >= words || lengths.I32()[i] != l {
				t.Errorf("a sentence %v of %d tokens", row, lengths.I32()[i])
			}
		}
	}
	if !slices.Equal(batches[0], batches[poolBatches]) || slices.Equal(batches[0], batches[1]) {
		t.Error("sentences do not come round, or all batches are the same")
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
