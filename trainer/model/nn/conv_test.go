package nn

import (
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

type geometry struct{ n, in, out, h, w, k, stride, pad int }

// direct is PyTorch's conv2d with weight (out, in, k, k).
func (g geometry) direct(x, w, bias []float64) []float64 {
	oh, ow := (g.h+2*g.pad-g.k)/g.stride+1, (g.w+2*g.pad-g.k)/g.stride+1
	y := make([]float64, g.n*g.out*oh*ow)
	for n := range g.n {
		for o := range g.out {
			for i := range oh {
				for j := range ow {
					sum := bias[o]
					for c := range g.in {
						for p := range g.k {
							for q := range g.k {
								r, s := i*g.stride+p-g.pad, j*g.stride+q-g.pad
								if r >= 0 && r < g.h && s >= 0 && s < g.w {
									sum += x[((n*g.in+c)*g.h+r)*g.w+s] * w[((o*g.in+c)*g.k+p)*g.k+q]
								}
							}
						}
					}
					y[((n*g.out+o)*oh+i)*ow+j] = sum
				}
			}
		}
	}
	return y
}

// transposed is PyTorch's conv_transpose2d with weight (in, out, k, k): each
// pixel adds its kernel to the output.
func (g geometry) transposed(x, w, bias []float64) []float64 {
	oh, ow := (g.h-1)*g.stride-2*g.pad+g.k, (g.w-1)*g.stride-2*g.pad+g.k
	y := make([]float64, g.n*g.out*oh*ow)
	for i := range y {
		y[i] = bias[i/(oh*ow)%g.out]
	}
	for n := range g.n {
		for c := range g.in {
			for i := range g.h {
				for j := range g.w {
					for o := range g.out {
						for p := range g.k {
							for q := range g.k {
								r, s := i*g.stride+p-g.pad, j*g.stride+q-g.pad
								if r >= 0 && r < oh && s >= 0 && s < ow {
									y[((n*g.out+o)*oh+r)*ow+s] += x[((n*g.in+c)*g.h+i)*g.w+j] * w[((c*g.out+o)*g.k+p)*g.k+q]
								}
							}
						}
					}
				}
			}
		}
	}
	return y
}

var geometries = map[string]geometry{
	"1x1":           {2, 3, 4, 3, 5, 1, 1, 0},
	"3x3 pad 1":     {2, 3, 4, 5, 4, 3, 1, 1},
	"4x4 stride 2":  {2, 2, 3, 6, 8, 4, 2, 1},
	"4x4 to a dot":  {3, 2, 5, 4, 4, 4, 1, 0},
	"3x3 stride 3":  {1, 2, 2, 9, 6, 3, 3, 0},
	"5x5 wide pad":  {1, 1, 2, 4, 3, 5, 1, 2},
	"one from many": {1, 6, 1, 4, 4, 3, 1, 1},
}

func TestConv2dAgainstLoops(t *testing.T) {
	for name, g := range geometries {
		for _, noBias := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c, vars := context64(Train), ddptest.NewVars()
				x := c.Input("x", graph.T(graph.F64, g.n, g.in, g.h, g.w))
				c.Output("y", Conv2d{Name: "l", In: g.in, Out: g.out, Kernel: g.k, Stride: g.stride, Pad: g.pad, NoBias: noBias}.Apply(c, x))
				in := ddptest.Noise(1, c.Shape(x).Len())
				out := run(t, c, vars, values{"x": in})
				bias := make([]float64, g.out)
				if !noBias {
					bias = numbers(t, vars, "l.bias")
				}
				near(t, "y", out["y"], g.direct(in, numbers(t, vars, "l.weight"), bias), 1e-13)
			})
		}
	}
}

func TestConvTranspose2dAgainstLoops(t *testing.T) {
	for name, g := range geometries {
		for _, noBias := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c, vars := context64(Train), ddptest.NewVars()
				x := c.Input("x", graph.T(graph.F64, g.n, g.in, g.h, g.w))
				c.Output("y", ConvTranspose2d{Name: "l", In: g.in, Out: g.out, Kernel: g.k, Stride: g.stride, Pad: g.pad, NoBias: noBias}.Apply(c, x))
				in := ddptest.Noise(1, c.Shape(x).Len())
				out := run(t, c, vars, values{"x": in})
				bias := make([]float64, g.out)
				if !noBias {
					bias = numbers(t, vars, "l.bias")
				}
				near(t, "y", out["y"], g.transposed(in, numbers(t, vars, "l.weight"), bias), 1e-13)
			})
		}
	}
}

func TestLinearAgainstLoops(t *testing.T) {
	const n, in, out = 3, 4, 5
	for _, noBias := range []bool{false, true} {
		c, vars := context64(Train), ddptest.NewVars()
		x := c.Input("x", graph.T(graph.F64, n, in))
		c.Output("y", Linear{Name: "l", In: in, Out: out, NoBias: noBias}.Apply(c, x))
		xs := ddptest.Noise(1, n*in)
		got := run(t, c, vars, values{"x": xs})["y"]
		w, want := numbers(t, vars, "l.weight"), make([]float64, n*out)
		for i := range n {
			for o := range out {
				want[i*out+o] = dot(xs[i*in:(i+1)*in], w[o*in:(o+1)*in])
				if !noBias {
					want[i*out+o] += numbers(t, vars, "l.bias")[o]
				}
			}
		}
		near(t, "y", got, want, 1e-14)
	}
}

// Errors name the layer and what is wrong.
func TestLayerErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(c *Context, x graph.ID)
		want string
	}{
		{"conv channels", func(c *Context, x graph.ID) { Conv2d{Name: "a", In: 4, Out: 1, Kernel: 3, Stride: 1}.Apply(c, x) }, "a: conv2d"},
		{"transposed channels", func(c *Context, x graph.ID) {
			ConvTranspose2d{Name: "b", In: 4, Out: 1, Kernel: 3, Stride: 1}.Apply(c, x)
		}, "b: the image has 2 channels, the layer wants 4"},
		{"transposed, more channels", func(c *Context, x graph.ID) {
			ConvTranspose2d{Name: "c", In: 1, Out: 1, Kernel: 3, Stride: 1}.Apply(c, x)
		}, "c: the image has 2 channels, the layer wants 1"},
		{"batch norm channels", func(c *Context, x graph.ID) { BatchNorm2d{Name: "d", C: 4}.Apply(c, x) }, "d: "},
		{"linear of an image", func(c *Context, x graph.ID) { Linear{Name: "e", In: 2, Out: 2}.Apply(c, x) }, "e: matmul"},
		{"one name, two shapes", func(c *Context, x graph.ID) {
			Conv2d{Name: "f", In: 2, Out: 1, Kernel: 3, Stride: 1}.Apply(c, x)
			Conv2d{Name: "f", In: 2, Out: 2, Kernel: 3, Stride: 1}.Apply(c, x)
		}, "f: variable f.weight is a weight f32[1,2,3,3], and asked for as a weight f32[2,2,3,3]"},
		{"set what is not there", func(c *Context, x graph.ID) { c.Set("g", x) }, "variable g is set before it is declared"},
		{"set to another type", func(c *Context, x graph.ID) {
			c.Weight("h", graph.D(1), Ones)
			c.Set("h", x)
		}, "variable h is f32[1], and set to f32[1,2,6,6]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewContext(Train, 1)
			tt.make(c, c.Input("x", graph.T(graph.F32, 1, 2, 6, 6)))
			if _, err := c.Commit(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// Later layers see what Set gave; the next run starts from it.
func TestStateIsThreaded(t *testing.T) {
	vars := ddptest.NewVars()
	for _, start := range []float64{1, 3, 9} {
		c := context64(Train)
		c.Scope("s", func() {
			w := c.Weight("w", graph.D(2), Ones)
			c.Output("before", w)
			c.Update("w", c.Scale(w, 3))
			c.Output("after", c.Weight("w", graph.D(2), Ones))
		})
		out := run(t, c, vars, nil)
		near(t, "before", out["before"], []float64{start, start}, 0)
		near(t, "after", out["after"], []float64{3 * start, 3 * start}, 0)
		near(t, "variable", numbers(t, vars, "s.w"), []float64{3 * start, 3 * start}, 0)
	}
}

func TestFrozenWeightsAreConstants(t *testing.T) {
	c, vars := context64(Train), ddptest.NewVars()
	x := c.Input("x", graph.T(graph.F64, 1, 2, 3, 3))
	l := Conv2d{Name: "net.l", In: 2, Out: 2, Kernel: 3, Stride: 1}
	c.Frozen = true
	y := l.Apply(c, x)
	c.Frozen = false
	ps := c.Params("net")
	grads := c.Grad(c.Sum(c.Square(y)), append(IDs(ps), x)...)
	for i, g := range grads {
		c.Output([]string{"weight", "bias", "x"}[i], g)
	}
	if len(ps) != 2 || ps[0].Name != "net.l.weight" || ps[1].Name != "net.l.bias" {
		t.Fatalf("parameters %v", ps)
	}
	out := run(t, c, vars, values{"x": ddptest.Noise(1, 18)})
	near(t, "gradient of the bias", out["bias"], make([]float64, len(out["bias"])), 0)
	near(t, "gradient of the weight", out["weight"], make([]float64, len(out["weight"])), 0)
	if dot(out["x"], out["x"]) == 0 {
		t.Error("nothing reaches x")
	}
}
