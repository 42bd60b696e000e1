package kernel

import (
	"flag"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

var all = flag.Bool("kernels.all", false, "TestConformance takes every case in both types, and more random graphs; some minutes")

// TestConformance runs the suite on a backend of these kernels, on the CPU, with
// weights as cuDNN wants them; every other run goes backwards.
func TestConformance(t *testing.T) {
	o := exectest.Options{DTypes: []graph.DType{graph.F32}, Graphs: 4}
	if *all {
		o = exectest.Options{DTypes: []graph.DType{graph.F32, graph.F64, graph.BF16}, Graphs: 60}
	}
	po := plan.Options{WeightsLast: true}
	compiler.prepare(t, suite(t, o, po))
	exectest.Run(t, func(t *testing.T) exec.Backend { return &backend{device: newDevice(t), o: po} }, o)
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
