package kernel

import (
	"flag"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

var all = flag.Bool("kernels.all", false, "TestConformance takes every case in three types and more random graphs, TestGroups more groups; some minutes")

// TestConformance runs the suite on a backend of these kernels, on the CPU, with
// weights as cuDNN wants them; every other run goes backwards.
func TestConformance(t *testing.T) {
	o := exectest.Options{DTypes: []graph.DType{graph.F32}, Graphs: 4}
	if *all {
		o = exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64, graph.BF16}, Graphs: 60}
	}
	po := plan.Options{WeightsLast: true}
	if exectest.Race {
		o.Graphs = 1
	}
	compiler.prepare(t, suite(t, o, po))
	exectest.Run(t, func(t *testing.T) exec.Backend { return &backend{device: newDevice(t), o: po} }, o)
}

// TestBatches runs the suite's networks and random graphs with all fused steps in
// batches.
func TestBatches(t *testing.T) {
	oneGoroutine(t)
	b := &backend{device: newDevice(t), o: plan.Options{WeightsLast: true}, batch: true}
	cases := exectest.Networks()
	for seed := range 8 {
		cases = append(cases, exectest.RandomCase(uint64(seed)))
	}
	for _, dt := range []graph.DType{graph.F32, graph.F64} {
		var launches []Launch
		batches := 0
		for _, c := range cases {
			g, err := c.Graph(dt, graph.Input)
			if err != nil {
				t.Fatal(err)
			}
			p := plan.New(g, b.o)
			for _, l := range launchesOf(t, p) {
				if !strings.HasPrefix(l.Entry, "fused") && !strings.HasPrefix(l.Entry, "reduce") {
					launches = append(launches, l)
				}
			}
			err = chained(p, func([]int) {}, func(b *Batch, steps []int) {
				launches = append(launches, b.Launch)
				if len(steps) > 1 {
					batches++
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if batches < 20 {
			t.Fatalf("%d launches of several steps: the test has lost its subject", batches)
		}
		compiler.prepare(t, launches)
		for _, c := range cases {
			if err := exectest.Check(b, c, dt); err != nil {
				t.Errorf("%s, %v: %v", c.Name, dt, err)
			}
			b.used = 0
		}
	}
}

// suite is the kernels of the suite's cases.
func suite(t *testing.T, o exectest.Options, po plan.Options) (launches []Launch) {
	cases := append(exectest.Cases(), exectest.Networks()...)
	for seed := range o.Graphs {
		cases = append(cases, exectest.RandomCase(uint64(seed)))
	}
	for _, c := range cases {
		for _, dt := range o.DTypes {
			for _, kind := range []graph.Kind{graph.Input, graph.Var} {
				g, err := c.Graph(dt, kind)
				if err != nil {
					t.Fatal(err)
				}
				launches = append(launches, launchesOf(t, plan.New(g, po))...)
			}
		}
	}
	return launches
}

// launchesOf are the kernels of all steps of a plan, which it allocates.
func launchesOf(t testing.TB, p *plan.Plan) (launches []Launch) {
	for i := range p.Steps {
		p.Steps[i].Scratch = Scratch(p, i)
	}
	p.Allocate()
	for i, s := range p.Steps {
		switch s.Op.(type) {
		case plan.Start, plan.Wait:
			continue
		}
		l, err := For(p, i)
		if err != nil {
			t.Fatalf("step %d, %v: %v", i, s.Op, err)
		}
		launches = append(launches, l...)
	}
	return launches
}
