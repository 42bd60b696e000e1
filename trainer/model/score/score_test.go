package score

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// The density of the tests, of v (B, 1, 1, 3):
//
//	log p = −v₀⁴/4 − v₁⁴/2 + v₀v₁v₂ − v₂²
func logp(c *nn.Context, v graph.ID) graph.ID {
	at := func(i int) graph.ID { return c.Reshape(c.Slice(v, 3, i, i+1, 1), graph.D(c.Batch(v))) }
	x, y, z := at(0), at(1), at(2)
	fourth := func(x graph.ID) graph.ID { return c.Square(c.Square(x)) }
	return c.Sub(c.Sub(c.Mul(c.Mul(x, y), z), c.Square(z)), c.Add(c.Scale(fourth(x), 0.25), c.Scale(fourth(y), 0.5)))
}

func scoreByHand(v []float64) []float64 {
	x, y, z := v[0], v[1], v[2]
	return []float64{y*z - x*x*x, x*z - 2*y*y*y, x*y - 2*z}
}

func hessianByHand(v []float64) [3][3]float64 {
	x, y, z := v[0], v[1], v[2]
	return [3][3]float64{{-3 * x * x, z, y}, {z, -6 * y * y, x}, {y, x, -2}}
}

func halfSquare(x []float64) (sum float64) {
	for _, v := range x {
		sum += v * v / 2
	}
	return sum
}

const batch = 8 // all sign vectors of three numbers

var vType = graph.T(graph.F64, batch, 1, 1, 3)

func context() *nn.Context {
	c := nn.NewContext(nn.Train, 1)
	c.DType = graph.F64
	return c
}

func run(t *testing.T, c *nn.Context, in ddptest.Values) ddptest.Values {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	out, err := ddptest.Run(g, nil, nil, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Each loss against its formula, with the score and the curvature by hand.
func TestLosses(t *testing.T) {
	const sigma, sigma0 = 0.3, 0.1
	c := context()
	v, eps := c.Input("v", vType), c.Input("eps", vType)
	levels := c.Input("levels", graph.T(graph.F64, batch))
	s := Of(c, logp(c, v), v)
	c.Output("score", s)
	c.Output("dsm", Denoising(c, s, eps, sigma))
	c.Output("mdsm", Multiscale(c, s, eps, levels, sigma0))
	c.Output("sliced", Sliced(c, s, v, c.Input("u", vType)))
	c.Output("blur", Blur(c, v, eps, levels))
	in := ddptest.Values{"v": ddptest.Noise(1, 3*batch), "eps": ddptest.Noise(2, 3*batch), "u": ddptest.Noise(3, 3*batch)}
	for i := range batch {
		in["levels"] = append(in["levels"], 0.1+float64(i))
	}
	out := run(t, c, in)
	want := ddptest.Values{}
	for i := range batch {
		at := func(name string) []float64 { return in[name][3*i : 3*i+3] }
		s, h, level := scoreByHand(at("v")), hessianByHand(at("v")), in["levels"][i]
		var dsm, mdsm []float64
		sliced := halfSquare(s)
		for j, e := range at("eps") {
			dsm = append(dsm, s[j]+e/sigma)
			mdsm = append(mdsm, s[j]/level+e/(sigma0*sigma0))
			want["blur"] = append(want["blur"], at("v")[j]+level*e)
			for k, u := range at("u") {
				sliced += at("u")[j] * h[j][k] * u
			}
		}
		want["score"] = append(want["score"], s...)
		want["dsm"] = append(want["dsm"], halfSquare(dsm))
		want["mdsm"] = append(want["mdsm"], halfSquare(mdsm))
		want["sliced"] = append(want["sliced"], sliced)
	}
	for name, w := range want {
		if err := ddptest.Near(out[name], w, 1e-12); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A report has the loss, with MDSM times σ₀⁴ as well, the other losses, and the length of
// the gradient; its columns have their names, and shown is a loss of a size that can be read.
func TestReport(t *testing.T) {
	for objective, want := range map[Objective]struct {
		names  []string
		values []float64
		shown  []string
	}{
		DSM:  {[]string{"upper", "lower", algo.ReportStop, "grad_model"}, []float64{48, 7, 0, 5}, []string{"upper", "lower"}},
		MDSM: {[]string{"upper", "scaled", "lower", algo.ReportStop, "grad_model"}, []float64{48, 3, 7, 0, 5}, []string{"scaled", "lower"}},
	} {
		r := Report{Objective: objective, Noise: Noise{Sigma0: 0.5}, Loss: "upper", Others: []string{"lower"}}
		var names, shown []string
		for _, c := range r.Columns() {
			names = append(names, c.Name)
			if c.Shown {
				shown = append(shown, c.Name)
			}
		}
		if !slices.Equal(shown, want.shown) {
			t.Errorf("%s: shown are %v, want %v", objective, shown, want.shown)
		}
		c := context()
		number := func(x float64) graph.ID { return c.Full(graph.T(graph.F64), x) }
		r.Write(c, number(48), []graph.ID{number(7)}, []graph.ID{number(3), number(-4)})
		got := run(t, c, ddptest.Values{algo.InputStop: {0}})[algo.OutputReport]
		if !slices.Equal(names, want.names) || !slices.Equal(got, want.values) {
			t.Errorf("%s: got %v of %v, want %v of %v", objective, got, names, want.values, want.names)
		}
	}
}

// What DSM and MDSM perturb, and the level of noise that a sampler takes away at its end.
func TestNoise(t *testing.T) {
	n := Noise{Sigma: 0.5, Sigma0: 0.25, Levels: Grid{1, 2, Linear}}
	for o, want := range map[Objective]float64{SSM: 0, DSM: 0.5, MDSM: 0.25} {
		if got := n.Of(o); got != want {
			t.Errorf("%s: a level of %v, want %v", o, got, want)
		}
	}
	c := context()
	eps, levels := c.Ones(graph.T(graph.F64, 2, 1)), c.Input("levels", graph.T(graph.F64, 2))
	for _, o := range []Objective{DSM, MDSM} {
		c.Output(string(o), n.Perturbed(c, o, c.Zeros(graph.T(graph.F64, 2, 1)), eps, levels))
	}
	out := run(t, c, ddptest.Values{"levels": {3, 4}})
	if !slices.Equal(out["dsm"], []float64{0.5, 0.5}) || !slices.Equal(out["mdsm"], []float64{3, 4}) {
		t.Errorf("noise of %v and %v, want the one level and those of the grid", out["dsm"], out["mdsm"])
	}
	for want, bad := range map[string]Noise{"--sigma above 0": {Sigma0: 1, Levels: n.Levels}, "--sigma0 above 0": {Sigma: 1, Levels: n.Levels}, "rise": {Sigma: 1, Sigma0: 1}} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", bad, err, want)
		}
	}
}

// Over all sign vectors the sliced loss averages to the exact one.
func TestSlicedAverages(t *testing.T) {
	at := []float64{0.7, -0.4, 1.3}
	var v, u []float64
	for i := range batch {
		v = append(v, at...)
		for j := range 3 {
			u = append(u, float64(2*(i>>j&1)-1))
		}
	}
	c := context()
	x := c.Input("v", vType)
	each := Sliced(c, Of(c, logp(c, x), x), x, c.Input("u", vType))
	c.Output("each", each)
	c.Output("mean", c.Mean(each))
	out := run(t, c, ddptest.Values{"v": v, "u": u})
	h := hessianByHand(at)
	want := halfSquare(scoreByHand(at)) + h[0][0] + h[1][1] + h[2][2]
	if err := ddptest.Near(out["mean"], []float64{want}, 1e-13); err != nil {
		t.Error(err)
	}
	if math.Abs(out["each"][0]-want) < 0.1 {
		t.Errorf("one projection gives the mean, %v: the test sees nothing", want)
	}
}

// Ranks' levels are parts of one grid over the global batch.
func TestLevels(t *testing.T) {
	const n = 8
	for _, g := range []Grid{{0.05, 1.2, Linear}, {0.1, 3, Log}} {
		var want []float64
		for i := range n {
			f := float64(i) / (n - 1)
			if g.Spacing == Linear {
				want = append(want, g.Least+f*(g.Most-g.Least))
			} else {
				want = append(want, math.Pow(10, math.Log10(g.Least)+f*(math.Log10(g.Most)-math.Log10(g.Least))))
			}
		}
		for _, world := range []int{1, 2, 4, 8} {
			got := make([]float64, n)
			err := ddptest.Each(world, func(rank int, _ collective.Comm) error {
				c := context()
				c.World = world
				c.Output("levels", g.Levels(c, c.Input("key", graph.KeyType), n/world))
				graph, err := c.Commit()
				if err != nil {
					return err
				}
				first := rank * n / world
				out, err := ddptest.Run(graph, nil, nil, ddptest.Values{"key": {1, 2, float64(first)}})
				copy(got[first:], out["levels"])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := ddptest.Near(got, want, 1e-13); err != nil {
				t.Errorf("%v on %d ranks: %v", g, world, err)
			}
		}
	}
}

func TestBadGrids(t *testing.T) {
	for _, tt := range []struct {
		g    Grid
		want string
	}{
		{Grid{0.1, 3, Log}, ""},
		{Grid{0, 3, Log}, "rise from above 0"},
		{Grid{3, 0.1, Log}, "rise from above 0"},
		{Grid{1, math.NaN(), Linear}, "rise from above 0"},
		{Grid{1, 1e39, Linear}, "rise from above 0"}, // infinite in float32
		{Grid{0.1, 3, "cubic"}, `linear or log, got "cubic"`},
	} {
		err := tt.g.Validate()
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: got %v, want an error with %q", tt.g, err, tt.want)
		}
	}
	c := context()
	Grid{0.1, 3, Log}.Levels(c, c.Input("key", graph.KeyType), 1)
	if _, err := c.Commit(); err == nil || !strings.Contains(err.Error(), "--batch of at least 2") {
		t.Errorf("a batch of one: got %v", err)
	}
}
