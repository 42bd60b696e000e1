package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/kernel"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// fewGeometries are convolutions of 3×3 between images of few channels and others, of
// conv32 and resnet128, and two of whose tiles a block's threads are no multiple: channels of
// x and y, and the side of both.
var fewGeometries = []struct{ x, y, side int }{{3, 48, 32}, {3, 64, 32}, {3, 96, 32}, {64, 3, 32}, {7, 64, 6}, {5, 64, 17}}

// fewChannels are checks of part d: kernels for images of few channels make what plain ones
// do, and how long they take. Their fragments are laid out as a document says, which no
// double can know.
func fewChannels(ctx context.Context, o *options, r *report) (err error) {
	for _, batch := range o.size.Images {
		err = errors.Join(err, r.do(ctx, "d", fmt.Sprintf("convolutions of few channels, %d images", batch), func() (string, map[string]any, error) {
			return fewTimes(ctx, r.Devices[0].Ordinal, batch, o.size.Copied/2)
		}))
	}
	return err
}

// fewTimes does all geometries. flush is how much memory is written before each run.
func fewTimes(ctx context.Context, ordinal, batch int, flush int64) (text string, numbers map[string]any, err error) {
	b := &fewBench{ctx: ctx, flush: flush}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ordinal); err != nil {
		return "", nil, err
	}
	if err := multiplies(b.d, typesOf(cuda.BF16)); err != nil {
		return "", nil, err
	}
	var lines []string
	numbers = map[string]any{}
	for _, g := range fewGeometries {
		c := graph.NewConv(3, 1, 1)
		for _, op := range []graph.Op{graph.Conv2D{Conv: c}, graph.Conv2DGradX{Conv: c, H: g.side, W: g.side}, graph.Conv2DGradW{Conv: c}} {
			kind, _, _ := strings.Cut(op.String(), "{")
			name := fmt.Sprintf("%s %d-%d %d²", kind, g.x, g.y, g.side)
			took, bytes, err := b.one(fewPlan(op, batch, g.x, g.y, g.side))
			if err != nil {
				return strings.Join(lines, "\n"), numbers, fmt.Errorf("%s: %w", name, err)
			}
			us := float64(took) / float64(time.Microsecond)
			numbers[name+" us"] = us
			lines = append(lines, fmt.Sprintf("%s: %.1f us, %.2f TB/s", name, us, float64(bytes)/took.Seconds()/1e12))
		}
	}
	return strings.Join(lines, "\n"), numbers, nil
}

// fewPlan is a plan of one step: a convolution, or one of its derivatives.
func fewPlan(op graph.Op, n, x, y, side int) *plan.Plan {
	image := func(c int) plan.Value { return plan.Value{DType: graph.BF16, Dims: graph.D(n, side, side, c)} }
	w := plan.Value{DType: graph.BF16, Dims: graph.D(y, 3, 3, x)}
	p := &plan.Plan{Values: []plan.Value{image(x), w, image(y)}, Steps: []plan.Step{{Op: op, In: []int{0, 1}, Out: []int{2}}}}
	switch op.(type) {
	case graph.Conv2DGradX:
		p.Values = []plan.Value{w, image(y), image(x)}
	case graph.Conv2DGradW:
		w.DType = graph.F32
		p.Values = []plan.Value{image(x), image(y), w}
	}
	for v := range p.Values {
		p.Values[v].Root, p.Values[v].Space, p.Values[v].Index, p.Values[v].Last = v, plan.Input, v, true
	}
	return p
}

// fewBench runs kernels.
type fewBench struct {
	ctx     context.Context
	flush   int64
	d       *driver.Device
	s       *driver.Stream
	marks   [2]*driver.Event
	cache   driver.Ptr
	modules []*driver.Module
}

func (b *fewBench) open(ordinal int) (err error) {
	if b.d, err = driver.OpenDevice(ordinal); err != nil {
		return err
	}
	if b.s, err = b.d.NewStream("few channels", 0); err != nil {
		return err
	}
	for i := range b.marks {
		if b.marks[i], err = b.d.NewEvent(true); err != nil {
			return err
		}
	}
	b.cache, err = b.d.Alloc(b.flush)
	return err
}

func (b *fewBench) close() error {
	var errs []error
	for _, m := range b.modules {
		errs = append(errs, m.Close())
	}
	if b.cache != 0 {
		errs = append(errs, b.d.Free(b.cache))
	}
	for _, e := range b.marks {
		if e != nil {
			errs = append(errs, e.Close())
		}
	}
	if b.s != nil {
		errs = append(errs, b.s.Close())
	}
	if b.d != nil {
		errs = append(errs, b.d.Close())
	}
	return errors.Join(errs...)
}

// made is a step's kernels, loaded.
type made struct {
	list      []kernel.Launch
	functions []driver.Function
	scratch   int
}

func (b *fewBench) make(p *plan.Plan) (m made, err error) {
	m.scratch = kernel.Scratch(p, 0)
	if m.list, err = kernel.For(p, 0); err != nil {
		return m, err
	}
	for _, l := range m.list {
		image, err := b.d.Compile(l.Entry, l.Source, driver.CompileOptions{Options: kernel.Options()})
		if err != nil {
			return m, err
		}
		module, err := b.d.Load(image)
		if err != nil {
			return m, err
		}
		b.modules = append(b.modules, module)
		f, err := module.Function(l.Entry)
		if err != nil {
			return m, err
		}
		m.functions = append(m.functions, f)
	}
	return m, nil
}

// one does a plan by plain kernels and by those for few channels, compares, and says how
// long the latter take and how much they move at least.
func (b *fewBench) one(p *plan.Plan) (took time.Duration, bytes int, err error) {
	plain, err := b.make(p)
	if err != nil {
		return 0, 0, err
	}
	q := *p
	q.Steps = []plan.Step{p.Steps[0]}
	q.Steps[0].Op = kernel.Few{Op: p.Steps[0].Op.(graph.Op)}
	few, err := b.make(&q)
	if err != nil {
		return 0, 0, err
	}
	var at [4]driver.Ptr // operands, result, scratch
	defer func() {
		for _, x := range at {
			err = errors.Join(err, b.d.Free(x))
		}
	}()
	for v := range p.Values {
		bytes += p.Values[v].Bytes()
		if at[v], err = random(b.d, b.s, p.Values[v].Dims.Len(), p.Values[v].DType); err != nil {
			return 0, 0, err
		}
	}
	if at[3], err = b.d.Alloc(int64(max(plain.scratch, few.scratch, 1))); err != nil {
		return 0, 0, err
	}
	want, err := b.result(plain, at, &p.Values[2])
	if err != nil {
		return 0, 0, err
	}
	got, err := b.result(few, at, &p.Values[2])
	if err != nil {
		return 0, 0, err
	}
	if err := alike(want, got, p.Values[2].DType); err != nil {
		return 0, 0, err
	}
	took, err = b.time(few, at)
	return took, bytes, err
}

// memoryAt is that of operands, result and scratch.
func memoryAt(at [4]driver.Ptr) kernel.Memory {
	return kernel.Memory{Value: func(v int) uint64 { return uint64(at[v]) }, Scratch: uint64(at[3])}
}

func (b *fewBench) run(m made, memory kernel.Memory) error {
	for i := range m.list {
		if err := b.s.Launch(m.functions[i], m.list[i].Grid, kernel.Block, 0, m.list[i].Args(memory)); err != nil {
			return err
		}
	}
	return nil
}

// result is what kernels make, of memory that was something else before.
func (b *fewBench) result(m made, at [4]driver.Ptr, v *plan.Value) (list []float64, err error) {
	p, err := b.d.AllocPinned(v.Bytes())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Free()) }()
	err = cmp.Or(b.s.Memset(at[2], 0xff, int64(v.Bytes())), b.run(m, memoryAt(at)), b.s.CopyOut(p, 0, at[2], v.Bytes()), b.s.Sync(b.ctx))
	if err != nil {
		return nil, err
	}
	for i := range v.Dims.Len() {
		if v.DType == graph.BF16 {
			list = append(list, float64(collective.FromBF16(binary.LittleEndian.Uint16(p.Bytes()[2*i:]))))
		} else {
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(p.Bytes()[4*i:]))))
		}
	}
	return list, nil
}

// alike says whether results are the same but for roundings: of sums of some hundred
// products of normal numbers, or, of weights' gradients, of a million.
func alike(want, got []float64, t graph.DType) error {
	relative, absolute := 1.0/128, 1e-2
	if t == graph.F32 {
		relative, absolute = 1e-3, 0.5
	}
	for i, w := range want {
		if d := math.Abs(got[i] - w); !(d <= absolute+relative*math.Abs(w)) {
			return fmt.Errorf("element %d of %d is %v, and by plain kernels %v", i, len(want), got[i], w)
		}
	}
	return nil
}

// time is the median of some runs, whose operands come from memory: behind work, so that what
// the host does for a launch is not in it.
func (b *fewBench) time(m made, at [4]driver.Ptr) (time.Duration, error) {
	flush := func(int) error { return b.s.Memset(b.cache, 1, b.flush) }
	return b.behind(flush, m, memoryAt(at), func(int) error { return nil })
}

// behind is the median of some runs, each behind what before puts onto the stream for that run;
// after looks at what each has left.
func (b *fewBench) behind(before func(run int) error, m made, memory kernel.Memory, after func(run int) error) (time.Duration, error) {
	var times []time.Duration
	for run := range 9 {
		err := cmp.Or(before(run), b.s.Record(b.marks[0]), b.run(m, memory), b.s.Record(b.marks[1]), b.s.Sync(b.ctx), after(run))
		if err != nil {
			return 0, err
		}
		d, err := b.d.Elapsed(b.marks[0], b.marks[1])
		if err != nil {
			return 0, err
		}
		times = append(times, d)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
