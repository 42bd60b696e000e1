package nets

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// The residual networks in plain loops, one image at a time, with batch norm by
// running statistics.

// loops are the values of all variables.
type loops struct {
	t    *testing.T
	vars exec.Vars
}

func (l loops) get(name string) []float64 {
	l.t.Helper()
	x, err := l.vars.Get(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

// plane is an image: c·s·s numbers.
type plane struct {
	c, s int
	x    []float64
}

func (p plane) at(c, y, x int) float64 {
	if y < 0 || x < 0 || y >= p.s || x >= p.s {
		return 0
	}
	return p.x[(c*p.s+y)*p.s+x]
}

func newPlane(c, s int, f func(c, y, x int) float64) plane {
	p := plane{c, s, make([]float64, c*s*s)}
	for i := range p.x {
		p.x[i] = f(i/(s*s), i/s%s, i%s)
	}
	return p
}

// weight is that of a layer, divided by uᵀWv if it has them.
func (l loops) weight(layer string, spectral bool) []float64 {
	if !spectral {
		return l.get(layer + ".weight")
	}
	w, u, v := l.get(layer+".weight_orig"), l.get(layer+".weight_u"), l.get(layer+".weight_v")
	sigma := 0.0
	for i := range w {
		sigma += u[i/len(v)] * w[i] * v[i%len(v)]
	}
	for i := range w {
		w[i] /= sigma
	}
	return w
}

// conv is a k×k convolution that keeps the size.
func (l loops) conv(layer string, p plane, k int, spectral bool) plane {
	w, b := l.weight(layer, spectral), l.get(layer+".bias")
	return newPlane(len(b), p.s, func(o, y, x int) float64 {
		sum := b[o]
		for i := range p.c {
			for dy := range k {
				for dx := range k {
					sum += w[((o*p.c+i)*k+dy)*k+dx] * p.at(i, y+dy-k/2, x+dx-k/2)
				}
			}
		}
		return sum
	})
}

func relu(p plane) plane {
	return newPlane(p.c, p.s, func(c, y, x int) float64 { return max(0, p.at(c, y, x)) })
}

func pool(p plane) plane {
	return newPlane(p.c, p.s/2, func(c, y, x int) float64 {
		return (p.at(c, 2*y, 2*x) + p.at(c, 2*y+1, 2*x) + p.at(c, 2*y, 2*x+1) + p.at(c, 2*y+1, 2*x+1)) / 4
	})
}

// double interpolates between the centres of pixels: ¾ of the nearer and ¼ of
// the farther, clamped at the edges.
func double(p plane) plane {
	near := func(y int) (a, b int) {
		a = y / 2
		return a, min(max(a-1+2*(y%2), 0), p.s-1)
	}
	return newPlane(p.c, 2*p.s, func(c, y, x int) float64 {
		y1, y2 := near(y)
		x1, x2 := near(x)
		return 0.75*(0.75*p.at(c, y1, x1)+0.25*p.at(c, y1, x2)) + 0.25*(0.75*p.at(c, y2, x1)+0.25*p.at(c, y2, x2))
	})
}

func sum(p, q plane) plane {
	return newPlane(p.c, p.s, func(c, y, x int) float64 { return p.at(c, y, x) + q.at(c, y, x) })
}

func (l loops) norm(layer string, p plane) plane {
	gamma, beta, mean, variance := l.get(layer+".weight"), l.get(layer+".bias"), l.get(layer+".running_mean"), l.get(layer+".running_var")
	return newPlane(p.c, p.s, func(c, y, x int) float64 {
		return gamma[c]*(p.at(c, y, x)-mean[c])/math.Sqrt(variance[c]+1e-5) + beta[c]
	})
}

// features are the channels' sums after the blocks of resnet32.
func (l loops) features(net string, p plane, plainShortcut bool) []float64 {
	layer := func(i int, name string) string { return fmt.Sprintf("%s.block%d.%s", net, i, name) }
	y := l.conv(layer(1, "conv2"), relu(l.conv(layer(1, "conv1"), p, 3, true)), 3, true)
	p = sum(pool(y), l.conv(layer(1, "shortcut"), pool(p), 1, true))
	for i := 2; i <= 4; i++ {
		y := l.conv(layer(i, "conv2"), relu(l.conv(layer(i, "conv1"), relu(p), 3, true)), 3, true)
		if !plainShortcut {
			p = relu(p)
		}
		if i == 2 {
			y, p = pool(y), pool(l.conv(layer(i, "shortcut"), p, 1, true))
		}
		p = sum(y, p)
	}
	p = relu(p)
	f := make([]float64, p.c)
	for i, v := range p.x {
		f[i/(p.s*p.s)] += v
	}
	return f
}

// repeat copies each pixel to a 2×2 square.
func repeat(p plane) plane {
	return newPlane(p.c, 2*p.s, func(c, y, x int) float64 { return p.at(c, y/2, x/2) })
}

func (l loops) linear(layer string, x []float64, spectral bool) []float64 {
	w, y := l.weight(layer, spectral), l.get(layer+".bias")
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
	}
	return y
}

func (l loops) generate(h []float64, double func(plane) plane) []float64 {
	x := l.linear("generator.in", h, false)
	p := plane{len(x) / 16, 4, x}
	for i := 1; i <= 3; i++ {
		block := fmt.Sprintf("generator.block%d.", i)
		y := l.conv(block+"conv1", double(relu(l.norm(block+"bn1", p))), 3, false)
		y = l.conv(block+"conv2", relu(l.norm(block+"bn2", y)), 3, false)
		p = sum(y, l.conv(block+"shortcut", double(p), 1, false))
	}
	p = l.conv("generator.out", relu(l.norm("generator.bn", p)), 3, false)
	for i, v := range p.x {
		p.x[i] = math.Tanh(v)
	}
	return p.x
}

// E, Q, D and G for 32×32 images against the loops, with either shortcut and
// either way to double, for variables that are all at random.
func TestResNetAgainstLoops(t *testing.T) {
	for _, plainShortcut := range []bool{false, true} {
		n := ResNet{Size: 32, Channels: 3, Width: 1, Latent: 5, PlainShortcut: plainShortcut, Nearest: plainShortcut}
		doubled := double
		if n.Nearest {
			doubled = repeat
		}
		c := nn.NewContext(nn.Eval, 1)
		c.DType = graph.F64
		v, h := c.Input("v", graph.T(graph.F64, 1, 3, 32, 32)), c.Input("h", graph.T(graph.F64, 1, 5))
		_, e := n.Energy(c, v)
		mean, logVar := n.Inference(c, v)
		c.Output("energy", e)
		c.Output("discriminator", n.Discriminator(c, v))
		c.Output("mean", mean)
		c.Output("logvar", logVar)
		c.Output("samples", n.Generator(c, h))
		g, err := c.Commit()
		if err != nil {
			t.Fatal(err)
		}
		l := loops{t, ddptest.NewVars()}
		for i, v := range c.Variables() {
			x := ddptest.Noise(uint32(i), v.Type.Shape.Len())
			for j := range x {
				x[j] = 0.3 + 0.5*math.Abs(x[j]) - 0.25*x[j] // above 0, for variances; σ̂ is then far from 0
				if v.Type.Shape.Rank() > 1 && j%2 == 1 {
					x[j] = -x[j]
				}
				switch { // so that softplus and tanh are used where they bend
				case v.Name == "inference.logvar.weight_u":
					x[j] *= 150
				case strings.HasSuffix(v.Name, "weight_u"):
					x[j] *= 6
				case strings.HasPrefix(v.Name, "generator.out"):
					x[j] *= 0.02
				}
			}
			if err := l.vars.Set(v.Name, ddptest.Tensor(v.Type, x)); err != nil {
				t.Fatal(err)
			}
		}
		image, latent := ddptest.Noise(100, 3*32*32), ddptest.Noise(101, 5)
		out, err := ddptest.Run(g, l.vars, nil, ddptest.Values{"v": image, "h": latent})
		if err != nil {
			t.Fatal(err)
		}
		logvar := l.linear("inference.logvar", l.features("inference", plane{3, 32, image}, plainShortcut), true)
		for i, raw := range logvar {
			logvar[i] = -math.Max(raw, 0) - math.Log1p(math.Exp(-math.Abs(raw)))
		}
		for name, want := range map[string][]float64{
			"energy":        l.linear("energy.out", l.features("energy", plane{3, 32, image}, plainShortcut), true),
			"discriminator": l.linear("discriminator.out", l.features("discriminator", plane{3, 32, image}, plainShortcut), true),
			"mean":          l.linear("inference.mean", l.features("inference", plane{3, 32, image}, plainShortcut), true),
			"logvar":        logvar,
			"samples":       l.generate(latent, doubled),
		} {
			if err := ddptest.Near(out[name], want, 1e-9); err != nil {
				t.Errorf("plain shortcut %v, %s: %v", plainShortcut, name, err)
			}
		}
	}
}

// 3×3 convolutions of blocks start from ±√2·√(6/(9·(in + out))), all other
// weights from ±√(6/(k²·(in + out))).
func TestResNetInitialWeights(t *testing.T) {
	n := ResNet{Size: 32, Channels: 3, Width: 16, Latent: 32}
	c := nn.NewContext(nn.Train, 1)
	v := c.Input("v", graph.T(graph.F32, 2, 3, 32, 32))
	n.Energy(c, v)
	mean, _ := n.Inference(c, v)
	n.Generator(c, mean)
	for _, v := range c.Variables() {
		s := v.Type.Shape
		if s.Rank() < 2 {
			continue
		}
		k2, gain := 1, 1.0
		if s.Rank() == 4 {
			k2 = s.At(2) * s.At(3)
		}
		if k2 == 9 && v.Name != "generator.out.weight" {
			gain = math.Sqrt2
		}
		bound := gain * math.Sqrt(6/float64(k2*(s.At(0)+s.At(1))))
		x, largest := v.Value(1), 0.0
		for i := range s.Len() {
			largest = max(largest, math.Abs(x.At(i)))
		}
		if largest > bound*(1+1e-6) || largest < bound*(1-30/float64(s.Len())) {
			t.Errorf("%s: largest weight %v, want nearly %v", v.Name, largest, bound)
		}
	}
}

// The layers of Mimicry's networks for 64×64 images, and of those without the
// discriminator's output bias.
func TestResNet64(t *testing.T) {
	conv := func(in, out, k int) int { return in*out*k*k + out }
	down := func(in, out int) int { return conv(in, in, 3) + conv(in, out, 3) + conv(in, out, 1) }
	up := func(in, out int) int {
		return 2*in + conv(in, out, 3) + 2*out + conv(out, out, 3) + conv(in, out, 1)
	}
	d := conv(3, 64, 3) + conv(64, 64, 3) + conv(3, 64, 1) + down(64, 128) + down(128, 256) + down(256, 512) + down(512, 1024) + 1024 + 1
	g := (128+1)*1024*16 + up(1024, 512) + up(512, 256) + up(256, 128) + up(128, 64) + 2*64 + conv(64, 3, 3)
	for bias, want := range map[bool]int{true: d, false: d - 1} {
		n := ResNet{Size: 64, Channels: 3, Width: 64, Latent: 128, NoOutputBias: !bias}
		if err := n.Validate(); err != nil {
			t.Fatal(err)
		}
		c := nn.NewContext(nn.Train, 1)
		v := n.Generator(c, c.Input("h", graph.T(graph.F32, 2, 128)))
		if got, want := c.Shape(v), graph.D(2, 3, 64, 64); got != want {
			t.Errorf("samples of %v, want %v", got, want)
		}
		if got, want := c.Shape(n.Discriminator(c, v)), graph.D(2, 1); got != want {
			t.Errorf("logits of %v, want %v", got, want)
		}
		if _, err := c.Commit(); err != nil {
			t.Fatal(err)
		}
		if got := count(c, "discriminator"); got != want {
			t.Errorf("the discriminator has %d parameters, want %d", got, want)
		}
		if got := count(c, "generator"); got != g {
			t.Errorf("the generator has %d parameters, want %d", got, g)
		}
	}
}
