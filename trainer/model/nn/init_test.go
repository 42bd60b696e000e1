package nn

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// PyTorch's defaults: weights and biases uniform on ±1/√fan_in, where fan_in
// is the product of all axes of the weight but the first — for a transposed
// convolution, whose weight is (in, out, k, k), that is out·k².
func TestDefaultInit(t *testing.T) {
	image := graph.T(graph.F32, 1, 40, 4, 4)
	for _, tt := range []struct {
		name  string
		apply func(c *Context)
		fanIn int
	}{
		{"conv", func(c *Context) {
			Conv2d{Name: "l", In: 40, Out: 300, Kernel: 3, Stride: 1}.Apply(c, c.Input("x", image))
		}, 40 * 9},
		{"transposed conv", func(c *Context) {
			ConvTranspose2d{Name: "l", In: 40, Out: 300, Kernel: 3, Stride: 1}.Apply(c, c.Input("x", image))
		}, 300 * 9},
		{"linear", func(c *Context) {
			Linear{Name: "l", In: 200, Out: 300}.Apply(c, c.Input("x", graph.T(graph.F32, 1, 200)))
		}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NewContext(Train, 1)
			tt.apply(c)
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			bound := 1 / math.Sqrt(float64(tt.fanIn))
			for _, v := range c.Variables() {
				x := ddptest.Numbers(v.Value(1))
				m := momentsOf(x)
				n := float64(len(x))
				if m.max > bound*(1+1e-6) || m.max < bound*(1-5/n) { // P(max < …) = e⁻⁵ per side
					t.Errorf("%s: |x| up to %v, want just below %v", v.Name, m.max, bound)
				}
				if !(math.Abs(m.mean) <= 4*bound/math.Sqrt(3*n)) {
					t.Errorf("%s: mean %v of %v numbers on ±%v", v.Name, m.mean, n, bound)
				}
				if want := bound * bound / 3; !(math.Abs(m.variance/want-1) <= 4*math.Sqrt(0.8/n)) {
					t.Errorf("%s: variance %v, want %v", v.Name, m.variance, want)
				}
			}
		})
	}
}

// Glorot's normal: the variance is that of neither side but of their mean.
func TestXavierNormal(t *testing.T) {
	v := Variable{Name: "w", Type: graph.T(graph.F32, 100, 200), Init: XavierNormal(300, 500)}
	x := ddptest.Numbers(v.Value(1))
	m, n := momentsOf(x), float64(len(x))
	if want := 2.0 / 800; !(math.Abs(m.mean) <= 4*math.Sqrt(want/n)) || !(math.Abs(m.variance/want-1) <= 4*math.Sqrt(2/n)) || !(math.Abs(m.kurtosis-3) <= 4*math.Sqrt(24/n)) {
		t.Errorf("got %+v, want a normal of variance %v", m, want)
	}
}

type sampleMoments struct{ mean, variance, kurtosis, max float64 }

func momentsOf(x []float64) (m sampleMoments) {
	n := float64(len(x))
	for _, v := range x {
		m.mean += v / n
		m.max = max(m.max, math.Abs(v))
	}
	for _, v := range x {
		m.variance += (v - m.mean) * (v - m.mean) / n
	}
	for _, v := range x {
		m.kurtosis += math.Pow(v-m.mean, 4) / n / m.variance / m.variance
	}
	return m
}

func TestNormalInit(t *testing.T) {
	v := Variable{"w", graph.T(graph.F32, 200, 500), Weight, Normal(0.02)}
	m := momentsOf(ddptest.Numbers(v.Value(1)))
	const n = 200 * 500
	if !(math.Abs(m.mean) <= 4*0.02/math.Sqrt(n)) || !(math.Abs(math.Sqrt(m.variance)/0.02-1) <= 4*math.Sqrt(0.5/n)) ||
		!(math.Abs(m.kurtosis-3) <= 4*math.Sqrt(24.0/n)) {
		t.Errorf("N(0, 0.02²) has moments %+v", m)
	}
}

func TestUnitVector(t *testing.T) {
	v := Variable{"u", graph.T(graph.F64, 70), Buffer, UnitVector}
	x := ddptest.Numbers(v.Value(1))
	if !(math.Abs(dot(x, x)-1) <= 1e-14) {
		t.Errorf("length² %v", dot(x, x))
	}
}

// Initial values depend on the seed and the name, and on nothing else.
func TestInitIsNamed(t *testing.T) {
	declare := func(layers ...string) map[string][]float64 {
		c := NewContext(Train, 1)
		x := c.Input("x", graph.T(graph.F32, 1, 6))
		for _, l := range layers {
			x = Linear{Name: l, In: 6, Out: 6, Spectral: true}.Apply(c, x)
		}
		vals := map[string][]float64{}
		for _, v := range c.Variables() {
			vals[v.Name] = ddptest.Numbers(v.Value(1))
		}
		return vals
	}
	one, two := declare("a", "b", "c"), declare("c", "a", "b")
	if len(one) != 12 || len(two) != 12 {
		t.Fatalf("%d and %d variables, want 12", len(one), len(two))
	}
	for name := range one {
		near(t, name, two[name], one[name], 0)
	}
	differ := func(what string, x, y []float64) {
		if ddptest.Near(x, y, 1e-3) == nil {
			t.Errorf("%s: the same numbers", what)
		}
	}
	differ("two layers", one["a.weight_orig"], one["b.weight_orig"])
	differ("two vectors of a layer", one["a.weight_u"], one["a.weight_v"])
	v := Variable{"a.weight_orig", graph.T(graph.F32, 6, 6), Weight, FanIn(6)}
	near(t, "seed 1", ddptest.Numbers(v.Value(1)), one[v.Name], 0)
	differ("two seeds", ddptest.Numbers(v.Value(2)), one[v.Name])
	differ("two seeds that agree in their low half", ddptest.Numbers(v.Value(1<<32+1)), one[v.Name])
}

// The numbers of a variable are those of the stream that 64-bit FNV-1a makes of its name:
// its high half in the place of the step, its low half in that of the sample. Another
// stream would make another run of every seed.
func TestStreamOfAName(t *testing.T) {
	hash := uint64(14695981039346656037)
	for _, b := range []byte("net.weight") {
		hash = (hash ^ uint64(b)) * 1099511628211
	}
	want := make([]float64, 8)
	philox.Name{Seed: 3, Purpose: philox.Init, Step: uint32(hash >> 32), Sample: uint32(hash)}.Normal(want)
	v := Variable{"net.weight", graph.T(graph.F64, 8), Weight, Normal(1)}
	near(t, v.Name, ddptest.Numbers(v.Value(3)), want, 0)
}

// A layer that is given initial values has them, and not the default.
func TestGivenInit(t *testing.T) {
	c := context64(Train)
	image := c.Input("x", graph.T(graph.F64, 1, 2, 4, 4))
	Conv2d{Name: "conv", In: 2, Out: 2, Kernel: 3, Stride: 1, NoBias: true, Init: Ones}.Apply(c, image)
	Conv2d{Name: "spectral", In: 2, Out: 2, Kernel: 3, Stride: 1, NoBias: true, Spectral: true, Init: Ones}.Apply(c, image)
	ConvTranspose2d{Name: "transposed", In: 2, Out: 2, Kernel: 3, Stride: 1, NoBias: true, Init: Ones}.Apply(c, image)
	Linear{Name: "linear", In: 2, Out: 2, Init: Ones, BiasInit: Ones}.Apply(c, c.Input("y", graph.T(graph.F64, 1, 2)))
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	for _, v := range c.Variables() {
		if x := ddptest.Numbers(v.Value(1)); v.Role == Weight && (slices.Min(x) != 1 || slices.Max(x) != 1) {
			t.Errorf("%s begins with %v, want the ones that it is given", v.Name, x)
		}
	}
}

// What is there already is kept.
func TestInitialiseKeeps(t *testing.T) {
	vars := ddptest.NewVars()
	set(t, vars, "a", graph.D(2), []float64{5, 6})
	specs := []Variable{{"a", graph.T(graph.F64, 2), Weight, Ones}, {"b", graph.T(graph.F64, 2), Weight, Ones}}
	if err := Initialise(vars, specs, 1); err != nil {
		t.Fatal(err)
	}
	near(t, "a", numbers(t, vars, "a"), []float64{5, 6}, 0)
	near(t, "b", numbers(t, vars, "b"), []float64{1, 1}, 0)
}
