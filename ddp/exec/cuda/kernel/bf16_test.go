package kernel

import (
	"context"
	"math"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
)

// TestBF16Images runs the suite's networks with images in bfloat16: results are those
// of float32 but for some roundings to 8 bits.
func TestBF16Images(t *testing.T) {
	po := plan.Options{WeightsLast: true, BF16Images: true}
	var launches []Launch
	narrow := 0
	for _, c := range exectest.Networks() {
		g, err := c.Graph(graph.F32, graph.Input)
		if err != nil {
			t.Fatal(err)
		}
		p := plan.New(g, po)
		launches = append(launches, launchesOf(t, p)...)
		for _, v := range p.Values {
			if v.DType == graph.BF16 {
				narrow++
			}
		}
	}
	if narrow == 0 {
		t.Fatal("no network has an image in bfloat16")
	}
	compiler.prepare(t, launches)
	b := &backend{device: newDevice(t), o: po}
	for _, c := range exectest.Networks() {
		t.Run(c.Name, func(t *testing.T) {
			got, want := results(t, b, c), results(t, ref.New(), c)
			for name, w := range want {
				most, off := 0.0, 0.0
				for i := range w.Type.Shape.Len() {
					most, off = max(most, math.Abs(w.At(i))), max(off, math.Abs(w.At(i)-got[name].At(i)))
				}
				if !(off <= 0.04*most+1e-6) {
					t.Errorf("output %s: off by %.2g of %.2g", name, off, most)
				}
			}
		})
	}
}

// results runs a case.
func results(t *testing.T, b exec.Backend, c exectest.Case) map[string]*exec.Tensor {
	g, err := c.Graph(graph.F32, graph.Input)
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(g, exec.Options{Name: c.Name})
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range c.Tensors(graph.F32) {
		if in := p.Input(name); in != nil {
			copy(in.Bytes(), x.Bytes())
		}
	}
	if err := exec.Run(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	out := map[string]*exec.Tensor{}
	for _, o := range g.Outputs() {
		out[o.Name] = p.Output(o.Name)
	}
	return out
}
