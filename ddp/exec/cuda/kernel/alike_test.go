package kernel

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// TestAlike: steps of one kernel, of other extents and constants, have the same bits in
// one launch as in one each, forwards and backwards, run after run.
func TestAlike(t *testing.T) {
	p := planOf(t, plan.Options{Apart: 1 << 30}, func(b *graph.Builder) {
		for k := range 4 {
			x := b.Input(fmt.Sprint("x", k), graph.T(graph.F32, 10000+1100*k, 8))
			b.Output(fmt.Sprint("sum", k), b.SumKeep(b.Square(x), 0))
			b.Output(fmt.Sprint("turned", k), b.Transpose(b.Input(fmt.Sprint("m", k), graph.T(graph.F32, 40+k, 70-k)), 1, 0))
			b.Output(fmt.Sprint("scaled", k), b.Tanh(b.Scale(x, float64(k+1)/2)))
		}
	})
	d := newDevice(t)
	start := map[space]int{}
	place := func(s plan.Space, index, n int) { start[space{s, index}] = d.alloc(n) }
	place(plan.Arena, 0, p.ArenaBytes)
	for i, e := range p.Inputs {
		place(plan.Input, i, e.Type.Bytes())
		x := exec.NewTensor(e.Type)
		for j := range x.F32() {
			x.F32()[j] = float32((j*7+i)%101)/50 - 1
		}
		copy(d.memory[start[space{plan.Input, i}]:], x.Bytes())
	}
	for i, e := range p.Outputs {
		place(plan.Output, i, e.Type.Bytes())
	}
	counters, named := map[int]int{}, map[string][]int{}
	var names []string
	for i := range p.Steps {
		l, err := For(p, i)
		if err != nil {
			t.Fatal(err)
		}
		counters[i] = d.alloc(Counters(l))
		clear(d.memory[counters[i]:][:Counters(l)])
		n := AlikeName(p, i)
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
		named[n] = append(named[n], i)
	}
	memory := func(i int) Memory {
		return Memory{Value: func(v int) uint64 {
			s, index, off := p.View(v)
			return deviceBase + uint64(start[space{s, index}]+off)
		}, Scratch: deviceBase + uint64(start[space{plan.Arena, 0}]+p.Steps[i].ScratchAt), Counters: deviceBase + uint64(counters[i])}
	}
	results := func() (all []byte) {
		for i, e := range p.Outputs {
			mem := d.memory[start[space{plan.Output, i}]:][:e.Type.Bytes()]
			all = append(all, mem...)
			spoil(mem)
		}
		return all
	}
	for i := range p.Steps {
		l, _ := For(p, i) // as above
		for k := range l {
			if err := d.run(&l[k], memory(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want, together, met := results(), 0, 0
	var all []*Alike
	for _, n := range names { // a copy, alone or not, reads what a step of another name has made
		a, err := ForAlike(p, named[n])
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, a); len(named[n]) > 1 {
			together++
		}
		met += b2i(a.Counters(0) > 0 && len(named[n]) > 1)
	}
	if together < 3 || met == 0 {
		t.Fatalf("%d launches of several steps, %d of which have blocks that meet: the test has lost its subject", together, met)
	}
	for d.order = range 2 {
		for _, a := range all {
			table := a.Table(memory)
			at := d.alloc(len(table))
			copy(d.memory[at:], table)
			if err := d.runArgs(&a.Launch, a.Args(deviceBase+uint64(at))); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(results(), want) {
			t.Errorf("order %d: the bits are not those of a launch for each step", d.order)
		}
	}
	if _, err := ForAlike(p, []int{named[names[0]][0], named[names[1]][0]}); err == nil {
		t.Error("steps of two kernels are in one launch")
	}
}

// TestAlikeNetworks runs the suite's networks with all steps of one kernel that can begin
// at the same time in one launch.
func TestAlikeNetworks(t *testing.T) {
	oneGoroutine(t)
	b := &backend{device: newDevice(t), o: plan.Options{WeightsLast: true}, alike: true}
	alone, shared := networkLaunches(t, b.o)
	compiler.prepare(t, alone)
	compiler.prepare(t, shared) // apart: a kernel and its shared form declare the same arguments
	for _, c := range exectest.Networks() {
		if err := exectest.Check(b, c, graph.F32); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		b.used = 0
	}
	if b.shared < 20 {
		t.Errorf("%d launches of several steps: the test has lost its subject", b.shared)
	}
}

// networkLaunches are the kernels of the networks' steps: of each alone, and of several of
// a kind together.
func networkLaunches(t *testing.T, o plan.Options) (alone, shared []Launch) {
	for _, c := range exectest.Networks() {
		for _, kind := range []graph.Kind{graph.Input, graph.Var} {
			g, err := c.Graph(graph.F32, kind)
			if err != nil {
				t.Fatal(err)
			}
			p := plan.New(g, o)
			alone = append(alone, launchesOf(t, p)...)
			for _, l := range p.Launches(plan.Together{Alike: func(i int) string { return AlikeName(p, i) }}) {
				if !l.Alike {
					continue
				}
				a, err := ForAlike(p, slices.Concat(l.Chains...))
				if err != nil {
					t.Fatal(err)
				}
				shared = append(shared, a.Launch)
			}
		}
	}
	return alone, shared
}
