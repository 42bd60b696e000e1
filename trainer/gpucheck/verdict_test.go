package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/collective/cuda/cudatest"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/graph"
)

// TestKernelsAlike: results of two kernels are alike to their type's roundings, and what is no
// number is like nothing.
func TestKernelsAlike(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		want, got float64
		t         graph.DType
		ok        bool
	}{
		{100, 100.7, graph.BF16, true}, {100, 99.3, graph.BF16, true}, {100, 101, graph.BF16, false}, {-100, 100, graph.BF16, false},
		{0, 0.009, graph.BF16, true}, {0, -0.011, graph.BF16, false},
		{1000, 1001.4, graph.F32, true}, {1000, 1002, graph.F32, false}, {0, 0.6, graph.F32, false},
		{1, nan, graph.BF16, false}, {nan, 1, graph.BF16, false}, {1, inf, graph.F32, false},
	} {
		if err := alike([]float64{3, c.want}, []float64{3, c.got}, c.t); (err == nil) != c.ok {
			t.Errorf("%v and %v in %v: %v", c.want, c.got, c.t, err)
		}
	}
}

// TestSumsRight: sums are right to float32's roundings of what they add up, which numbers of
// both signs leave little of.
func TestSumsRight(t *testing.T) {
	for got, ok := range map[float32]bool{1: true, 1.05: true, 0.95: true, 1.2: false, 0: false, -1: false, float32(math.NaN()): false} {
		want := sums{name: "sum", of: []float32{3, 1}, magnitudes: []float32{3, 1000}}
		if err := want.right([]float32{3, got}); (err == nil) != ok {
			t.Errorf("1 and %v, of numbers of 1000 in all: %v", got, err)
		}
	}
}

// TestFusedWant: all outputs of the groups that are timed are held to the CPU's.
func TestFusedWant(t *testing.T) {
	typ := graph.Type{DType: graph.F32, Shape: graph.D(24, 5)}
	g, err := fusedGraph(func(b *graph.Builder, x, _ graph.ID) { sumAndSquares(b, x, 0) }, typ)
	if err != nil {
		t.Fatal(err)
	}
	want, err := fusedWant(t.Context(), g, typ)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]float32{"sum": make([]float32, 5), "squares": make([]float32, 5)}
	for i, v := range normal(typ).F32() {
		got["sum"][i%5] += v
		got["squares"][i%5] += v * v
	}
	if err := allRight(want, func(name string) []float32 { return got[name] }); err != nil {
		t.Error(err)
	}
	for name, of := range got {
		of[3]++
		if err := allRight(want, func(name string) []float32 { return got[name] }); err == nil || !strings.HasPrefix(err.Error(), name+" 3 of 5 is ") {
			t.Errorf("one %s is wrong: %v", name, err)
		}
		of[3]--
	}
}

// TestPlacedStale: what sums a run before has left are none of this run's.
func TestPlacedStale(t *testing.T) {
	cudatest.Use(t)
	b, p := &fewBench{ctx: t.Context(), flush: 1}, sumsPlan(1)
	defer func() {
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := b.open(0); err != nil {
		t.Fatal(err)
	}
	m, err := b.make(p)
	if err != nil {
		t.Fatal(err)
	}
	memory, free, err := b.placedMemory(p, m)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := free(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := b.placedTime(p, m, memory); err != nil {
		t.Error(err)
	}
	if _, err := b.placedTime(p, made{}, memory); err == nil {
		t.Error("sums of no kernels are taken for right")
	}
}

// TestFarthest: reports are apart by the worst of their numbers, relative to 1 + what it should
// be; by what is no number, or lacks, more than by any bound.
func TestFarthest(t *testing.T) {
	for _, c := range []struct {
		a, b   [][]float64
		worst  float64
		column int
	}{
		{[][]float64{{1, 2}, {3, 4}}, [][]float64{{1, 2}, {3, 4}}, 0, 0},
		{[][]float64{{1, 2}, {3, 4}}, [][]float64{{1, 2}, {3, 3}}, 0.2, 1},
		{[][]float64{{1, 2}, {3, 4}}, [][]float64{{0.5, 2.1}, {3, 4}}, 0.25, 0},
		{[][]float64{{-3}}, [][]float64{{3}}, 1.5, 0},
		{[][]float64{{1}, {1}}, [][]float64{{1}}, math.Inf(1), 0},
	} {
		if worst, column := farthest(c.a, c.b); worst != c.worst || column != c.column {
			t.Errorf("%v and %v: %v in column %d, want %v in %d", c.a, c.b, worst, column, c.worst, c.column)
		}
	}
	for _, nan := range [][2]float64{{1, math.NaN()}, {math.NaN(), 1}, {math.Inf(1), math.Inf(1)}} {
		worst, column := farthest([][]float64{{5, nan[0], 5}, {5, 5, 5}}, [][]float64{{5, nan[1], 5}, {6, 5, 5}}) // others are apart, too, or not at all
		if !math.IsInf(worst, 1) || column != 1 {
			t.Errorf("%v: %v in column %d", nan, worst, column)
		}
	}
}

// TestAgree: ranks agree with one alone if their losses do to rounding, and norms of gradients
// to some more of it; with virtual shards no bit may differ, and the error names the column.
func TestAgree(t *testing.T) {
	names, err := small.columns()
	if err != nil {
		t.Fatal(err)
	}
	loss, norm := -1, -1
	for k, name := range names {
		if strings.HasPrefix(name, "grad") {
			norm = k
		} else if loss < 0 {
			loss = k
		}
	}
	for _, c := range []struct {
		column int
		by     float64
		bits   bool
		want   string
	}{
		{loss, 0, true, ""}, {loss, 1e-12, true, names[loss] + " is apart"}, {norm, 1e-12, true, names[norm] + " is apart"},
		{loss, 5e-5, false, ""}, {loss, 5e-4, false, "losses are apart"}, {norm, 5e-4, false, ""}, {norm, 5e-2, false, names[norm] + " is apart"},
		{loss, math.NaN(), false, "losses are apart"}, {norm, math.NaN(), false, names[norm] + " is apart"},
	} {
		want, got := make([]float64, len(names)), make([]float64, len(names))
		got[c.column] += c.by
		_, numbers, err := agree([][]float64{want, want}, [][]float64{want, got}, c.bits)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || numbers[apartKey] == nil {
			t.Errorf("%s by %v, bits %v: %v, %v, want %q", names[c.column], c.by, c.bits, numbers, err, c.want)
		}
	}
}

// TestEstimate: a step's products, and then the rest, at the rates that were measured; where
// one was not, nothing is said.
func TestEstimate(t *testing.T) {
	m := &rates{bytes: 2e12, flops: [3]float64{cuda.F32: 5e13, cuda.BF16: 5e14}}
	for _, c := range []struct {
		flops, bytes int64
		p            cuda.Precision
		want         float64
	}{{1e12, 4e9, cuda.BF16, 4}, {1e12, 4e9, cuda.F32, 22}, {1e12, 4e9, cuda.TF32, 0}} {
		if got := m.estimate(c.flops, c.bytes, c.p); !(math.Abs(got-c.want) <= 1e-9) {
			t.Errorf("%v: %v ms, want %v", c.p, got, c.want)
		}
	}
	if got := (&rates{flops: m.flops}).estimate(1e12, 4e9, cuda.BF16); got != 0 {
		t.Errorf("without a rate of copies: %v ms", got)
	}
}

// TestTail: what is told of a check is what was put out since it began: a crash from its first
// line on, else the end.
func TestTail(t *testing.T) {
	long := strings.Repeat("x", 2*excerptBytes)
	for _, c := range []struct{ written, want string }{
		{"a|b", "ab"},
		{"old panic: of the one before\n|" + marker + "new", "new"},
		{"one\n" + marker + "two\n" + marker + "three", "three"},
		{"before\nfatal err|or: all\n" + long + "|the end", "fatal error: all\n" + long[:excerptBytes-len("fatal error: all\n")]},
		{"SIGSEGV: first\npanic: then", "SIGSEGV: first\npanic: then"},
		{long + "the end", long[:excerptBytes-len("the end")] + "the end"},
	} {
		var w tail
		for _, part := range strings.Split(c.written, "|") {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if got := w.excerpt(); got != c.want {
			t.Errorf("%.60q: got %.60q … (%d), want %.60q … (%d)", c.written, got, len(got), c.want, len(c.want))
		}
	}
}

// TestWithoutBF16: on a GPU that does not multiply in bfloat16 the checks that would are not
// done, which is no failure.
func TestWithoutBF16(t *testing.T) {
	m := cudatest.Use(t)
	m.Set("CAPABILITY", "75")
	o, c := &options{}, cuda.Config{Precision: cuda.BF16}
	for name, check := range map[string]func() error{
		"engines":      func() error { _, _, err := survey(0, typesOf(cuda.BF16)); return err },
		"products":     func() error { _, err := productRate(0, 64, cuda.BF16); return err },
		"few channels": func() error { _, _, err := fewTimes(t.Context(), 0, 1, 1<<20); return err },
		"losses":       func() error { _, err := lossesOf(t.Context(), small, openGPU(c), 1); return err },
		"gradients":    func() error { _, err := gpu(c); return err },
		"times":        func() error { _, _, err := timed(t.Context(), o, small, c, nil); return err },
	} {
		var ended finding
		r := &report{tell: func(m message) error {
			if m.Ended != nil {
				ended = *m.Ended
			}
			return nil
		}}
		if err := r.do(t.Context(), "x", name, func() (string, map[string]any, error) { return "", nil, check() }); err != nil {
			t.Fatal(err)
		}
		if !ended.Skipped || r.ended || !strings.HasPrefix(ended.Text, "no bf16: ") {
			t.Errorf("%s: got %+v", name, ended)
		}
	}
	m.Clean()
}

// TestReportDo: a process of checks leaves out those that are done already, and after one that
// failed does no more; one that lacks what it needs, or is cut off, has not failed.
func TestReportDo(t *testing.T) {
	var told []string
	r := &report{from: 1, tell: func(m message) error {
		if c := m.Ended; c != nil {
			told = append(told, fmt.Sprintf("%s %v %v %s", c.Name, c.OK, c.Skipped, c.Text))
		}
		return nil
	}}
	limit := errors.New("the limit")
	for _, c := range []struct {
		name string
		ends string // the context: before, meanwhile, or not
		err  error
	}{
		{"done", "", nil}, {"good", "", nil}, {"lacks", "", fmt.Errorf("%w: no tool", errSkipped)},
		{"late", "before", errors.New("not asked")}, {"cut off", "meanwhile", fmt.Errorf("a wait: %w", limit)}, {"bad", "meanwhile", errors.New("wrong")}, {"next", "", nil},
	} {
		ctx, end := context.WithCancelCause(t.Context())
		if c.ends == "before" {
			end(limit)
		}
		err := r.do(ctx, "x", c.name, func() (string, map[string]any, error) {
			if c.ends == "meanwhile" {
				end(limit)
			}
			return "text", nil, c.err
		})
		end(nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	want := "good true false text, lacks false true text\nnot done: no tool, late false true the limit, cut off false true text\na wait: the limit, bad false false text\nwrong"
	if got := strings.Join(told, ", "); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if !r.ended || len(r.failed()) != 1 {
		t.Errorf("ended %v, failed %q", r.ended, r.failed())
	}
	var out bytes.Buffer
	w := &report{folder: t.TempDir(), stdout: &out}
	if err := w.add(finding{Name: "long", Text: strings.Repeat("line\n", 40)}); err != nil || !strings.Contains(out.String(), "… and 29 lines in report.txt") {
		t.Errorf("got %v, %s", err, &out)
	}
}
