package plan

import (
	"slices"

	"ebtrain/ddp/graph"
)

// narrow keeps images in bfloat16 (see Options.BF16Images). An array is an image
// where a convolution, pool or upsampling reads or makes one of its extents, of more
// than one pixel, in channels-last order. What a step cannot take in bfloat16 stays
// float32: weights and their gradients, sums, statistics, operands of products,
// outputs, variables and what travels. So a convolution may meet both types.
func (p *Plan) narrow() {
	n := &narrowing{Plan: p, image: p.imageDims(), wide: map[int]bool{}}
	for _, a := range p.assigns {
		n.widen(a.src)
	}
	for v := range p.Values {
		if p.halvesLines(v) {
			n.widen(v)
		}
	}
	for more := true; more; {
		before := len(n.wide)
		for i := range p.Steps {
			n.step(&p.Steps[i])
		}
		more = len(n.wide) > before
	}
	narrow := make([]bool, len(p.Values)) // asked of all before any of their roots is
	for v := range p.Values {
		narrow[v] = n.narrow(v)
	}
	for v, is := range narrow {
		if is {
			p.Values[v].DType = graph.BF16
			p.Values[v].Off /= 2 // all of its root is narrow
		}
	}
	p.narrowWeights()
	p.narrowGradients()
}

// halvesLines says whether v is a part of an array that is read where it lies, and that would not
// begin at a whole line, as it has to, in half of its place; on rank 0 any does, but ranks decide
// alike.
func (p *Plan) halvesLines(v int) bool {
	part := p.Values[v].Bytes()
	return part < p.Values[p.Values[v].Root].Bytes() && part%(2*Align) != 0
}

// narrowGradients leaves gradients of weights in bfloat16, where images in it make them and
// fused steps alone read them: devices round what they have added up in float32, and what
// widens it then is its reader. What travels is float32.
func (p *Plan) narrowGradients() {
	wide := map[int]bool{} // roots that are more than such gradients
	for _, a := range p.assigns {
		wide[p.Values[a.src].Root] = true
	}
	for v := range p.Values {
		if p.halvesLines(v) {
			wide[p.Values[v].Root] = true
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if _, ok := s.Op.(*Fused); !ok {
			for _, v := range s.In {
				wide[p.Values[v].Root] = true
			}
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if _, ok := s.Op.(graph.Conv2DGradW); !ok || p.Values[s.In[0]].DType != graph.BF16 || p.Values[s.In[1]].DType != graph.BF16 {
			continue
		}
		v := s.Out[0]
		if r := &p.Values[v]; r.Root != v || r.Space != Arena || wide[v] {
			continue
		}
		for w := range p.Values {
			if p.Values[w].Root == v {
				p.Values[w].DType, p.Values[w].Off = graph.BF16, p.Values[w].Off/2
			}
		}
	}
}

// narrowWeights gives convolutions of images in bfloat16 their weights in it, too, as
// devices want both operands alike: what is made for them alone is made so, and all else
// is copied once for all who read it.
func (p *Plan) narrowWeights() {
	others := p.readOtherwise()
	copies := map[int]int{}
	var steps []Step
	for i := range p.Steps {
		s := p.Steps[i]
		if k := p.weightsOf(&s); k >= 0 && p.Values[s.In[k]].DType == graph.F32 {
			v := s.In[k]
			to, made := copies[v]
			switch {
			case made:
			case p.Values[v].Root == v && !others[v]:
				p.Values[v].DType = graph.BF16
				to = v
			default:
				to = len(p.Values)
				p.Values = append(p.Values, Value{DType: graph.BF16, Dims: p.Values[v].Dims, Last: p.Values[v].Last, Root: to, parent: noParent, bcast: noParent})
				steps = append(steps, Step{Op: Copy{}, In: []int{v}, Out: []int{to}, Scope: s.Scope})
				copies[v] = to
			}
			s.In = slices.Clone(s.In)
			s.In[k] = to
		}
		steps = append(steps, s)
	}
	p.Steps = steps
}

// weightsOf is the operand of a step that is weights of an image in bfloat16, −1 if none is.
func (p *Plan) weightsOf(s *Step) int {
	switch s.Op.(type) {
	case graph.Conv2D:
		if p.Values[s.In[0]].DType == graph.BF16 {
			return 1
		}
	case graph.Conv2DGradX:
		if p.Values[s.In[1]].DType == graph.BF16 {
			return 0
		}
	}
	return -1
}

// readOtherwise are the roots that are more than such weights: read by others, assigned,
// not of the arena, or made by what makes no bfloat16.
func (p *Plan) readOtherwise() map[int]bool {
	is := map[int]bool{}
	for v := range p.Values {
		if r := p.Values[v].Root; p.Values[r].Space != Arena || p.Values[r].IsConst || v != r {
			is[r] = true
		}
	}
	for _, a := range p.assigns {
		is[p.Values[a.src].Root] = true
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		w := p.weightsOf(s)
		for k, v := range s.In {
			if k != w {
				is[p.Values[v].Root] = true
			}
		}
		f, fused := s.Op.(*Fused)
		for k, v := range s.Out {
			if !fused || k >= len(f.Stores) {
				is[p.Values[v].Root] = true
			}
		}
	}
	return is
}

// imageDims are the extents of the images of more than one pixel.
func (p *Plan) imageDims() map[graph.Shape]bool {
	is := map[graph.Shape]bool{}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, v := range images(s.Op, s.In, s.Out) {
			if d := p.Values[v].Dims; d.At(1)*d.At(2) > 1 {
				is[d] = true
			}
		}
	}
	return is
}

type narrowing struct {
	*Plan
	image map[graph.Shape]bool // extents of images
	wide  map[int]bool         // roots that stay float32
}

// narrow says whether a value, for all that is known, is kept in bfloat16: all of
// its root is.
func (n *narrowing) narrow(v int) bool {
	root := n.Values[v].Root
	r := &n.Values[root]
	return r.Space == Arena && r.DType == graph.F32 && r.Last && !r.IsConst && n.image[r.Dims] && !n.wide[root]
}

func (n *narrowing) widen(vs ...int) {
	for _, v := range vs {
		if n.narrow(v) {
			n.wide[n.Values[v].Root] = true
		}
	}
}

// step keeps wide what the step cannot take otherwise.
func (n *narrowing) step(s *Step) {
	switch op := s.Op.(type) {
	case *Fused:
		n.widen(s.Out[len(op.Stores):]...)
	case graph.Conv2D:
		n.widen(s.In[1])
	case graph.Conv2DGradX:
		n.widen(s.In[0])
	case graph.Conv2DGradW:
		n.widen(s.Out...)
	case graph.SumPool2D, graph.SumUnpool2D, graph.MaxPool2D, graph.PlaneGather, graph.PlaneScatter, graph.Upsample2D, graph.Upsample2DT,
		graph.Slice, graph.Pad, graph.Concat:
		n.alike(s)
	case graph.Transpose, Copy: // they convert, as fused steps do
	default:
		n.widen(s.In...)
		n.widen(s.Out...)
	}
}

// alike keeps all floats of a step wide if one of them is: it only moves or adds.
func (n *narrowing) alike(s *Step) {
	all := slices.Concat(s.In, s.Out)
	for _, v := range all {
		if n.Values[v].DType == graph.F32 && !n.narrow(v) {
			n.widen(all...)
			return
		}
	}
}
