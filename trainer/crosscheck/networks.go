package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/inception"
	"ebtrain/trainer/model/nn"
)

// networks are those whose features samples are judged by.
func networks(ctx context.Context) (map[string]any, error) {
	out := map[string]any{}
	for name, part := range map[string]func(context.Context) (any, error){
		"inception": inceptionLayers, "resize": resized, "random": random, "classifier": classifier,
	} {
		v, err := part(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}

// looks are pictures and what a network makes of them, by layer.
type looks struct {
	Pictures array            `json:"pictures"`
	Drawn    map[string][]int `json:"drawn,omitempty"` // the weights that were drawn, and their shapes
	Outputs  map[string]array `json:"outputs"`
}

// see runs what build makes of pictures of that shape, on variables that value gives.
func see(ctx context.Context, shape graph.Shape, build func(*nn.Context, graph.ID), value func(nn.Variable) (*exec.Tensor, error)) (looks, error) {
	c := nn.NewContext(nn.Eval, 1)
	build(c, c.Input("pictures", graph.Type{DType: graph.F32, Shape: shape}))
	g, err := c.Commit()
	if err != nil {
		return looks{}, err
	}
	b := ref.New()
	vars := b.NewVars()
	for _, v := range c.Variables() {
		t, err := value(v)
		if err == nil {
			err = vars.Set(v.Name, t)
		}
		if err != nil {
			return looks{}, err
		}
	}
	p, err := b.Compile(g, exec.Options{Name: "network", Vars: vars})
	if err != nil {
		return looks{}, err
	}
	in := p.Input("pictures")
	copy(in.F32(), pictures(shape.Len(), 20))
	if err := exec.Run(ctx, p); err != nil {
		return looks{}, err
	}
	l := looks{Pictures: arrayOf(in), Outputs: map[string]array{}}
	for _, o := range g.Outputs() {
		l.Outputs[o.Name] = arrayOf(p.Output(o.Name))
	}
	return l, p.Close()
}

// pictures are n values in (−1, 1), others for each stream.
func pictures(n int, stream uint32) []float32 {
	x := normals(n, stream)
	out := make([]float32, n)
	for i, v := range x {
		out[i] = float32(math.Tanh(v))
	}
	return out
}

// inceptionLayers are all layers of the Inception network, on pictures that are not square
// and as small as leaves its last blocks 3×2.
func inceptionLayers(ctx context.Context) (any, error) {
	drawn := map[string][]int{}
	weights := inception.Tensors(func(name string, shape []int) ([]float32, error) {
		drawn[name] = shape
		return draw(name, shape), nil
	})
	l, err := see(ctx, graph.D(2, 3, 139, 107), func(c *nn.Context, x graph.ID) {
		for _, layer := range inception.Layers(c, x) {
			c.Output(layer.Name, layer.Y)
			x = layer.Y
		}
		c.Output("logits", inception.Logits(c, x))
	}, weights.Value)
	l.Drawn = drawn
	return l, err
}

// draw is a tensor of the Inception network's file of weights, with scales that let no
// layer vanish: by the name's CRC-32, so that the other side can draw it, too.
func draw(name string, shape []int) []float32 {
	n := 1
	for _, k := range shape {
		n *= k
	}
	of, fan := func(x float64) float64 { return 0.2 * x }, float64(n/shape[0]) // biases, means
	switch {
	case strings.HasSuffix(name, "running_var"):
		of = func(x float64) float64 { return 0.5 + x*x }
	case strings.HasSuffix(name, "bn.weight"):
		of = func(x float64) float64 { return 1 + 0.2*x }
	case strings.HasSuffix(name, "weight"):
		of = func(x float64) float64 { return math.Sqrt(2/fan) * x }
	}
	x, out := make([]float64, n), make([]float32, n)
	philox.Name{Seed: 5, Purpose: philox.Testing, Step: crc32.ChecksumIEEE([]byte(name))}.Normal(x)
	for i, v := range x {
		out[i] = float32(of(v))
	}
	return out
}

// resized are pictures that are enlarged, and such that are reduced along one side.
func resized(ctx context.Context) (any, error) {
	var all []looks
	for _, shape := range []graph.Shape{graph.D(1, 3, 24, 40), graph.D(1, 3, 323, 32)} {
		l, err := see(ctx, shape, func(c *nn.Context, x graph.ID) { c.Output("resize", inception.Resize(c, x)) }, inception.Tensors(nil).Value)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}
