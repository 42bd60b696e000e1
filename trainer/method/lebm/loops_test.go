package lebm

import (
	"fmt"
	"math"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/philox"
)

// loops is the method in plain loops, one sample at a time: nothing of it is in a
// graph, and slopes are central differences.
type loops struct {
	cfg Config
	w   map[string][]float64
}

func leaky(x, slope float64) float64 {
	if x < 0 {
		return slope * x
	}
	return x
}

// energy is E(z), 0 where there is none.
func (l loops) energy(z []float64) float64 {
	if l.cfg.Prior == Gaussian {
		return 0
	}
	x := z
	for i := 1; i <= 3; i++ {
		w, b := l.w[fmt.Sprintf("energy.linear%d.weight", i)], l.w[fmt.Sprintf("energy.linear%d.bias", i)]
		y := make([]float64, len(b))
		for o := range y {
			y[o] = b[o]
			for k, v := range x {
				y[o] += w[o*len(x)+k] * v
			}
			if i < 3 {
				y[o] = leaky(y[o], 0.2)
			}
		}
		x = y
	}
	return x[0]
}

// picture is G(z).
func (l loops) picture(z []float64) []float64 {
	x, side := z, 1
	layers := l.cfg.Net.layers()
	for i, layer := range layers {
		w, b := l.w[fmt.Sprintf("generator.conv%d.weight", i+1)], l.w[fmt.Sprintf("generator.conv%d.bias", i+1)]
		in := len(x) / (side * side)
		next := (side-1)*layer.stride - 2*layer.pad + layer.kernel
		y := make([]float64, layer.out*next*next)
		for o := range layer.out {
			for p := range next * next {
				y[o*next*next+p] = b[o]
			}
		}
		for c := range in {
			for p := range side * side {
				for o := range layer.out {
					for k := range layer.kernel * layer.kernel {
						row, col := p/side*layer.stride-layer.pad+k/layer.kernel, p%side*layer.stride-layer.pad+k%layer.kernel
						if row >= 0 && row < next && col >= 0 && col < next {
							y[(o*next+row)*next+col] += x[c*side*side+p] * w[(c*layer.out+o)*layer.kernel*layer.kernel+k]
						}
					}
				}
			}
		}
		for k := range y {
			if i < len(layers)-1 {
				y[k] = leaky(y[k], 0.1)
			} else {
				y[k] = math.Tanh(y[k])
			}
		}
		x, side = y, next
	}
	return x
}

func (l loops) squares(x, z []float64) (sum float64) {
	for i, g := range l.picture(z) {
		sum += (x[i] - g) * (x[i] - g)
	}
	return sum
}

// chain is the chain of a slot in the potential u, as a step draws it.
func (l loops) chain(h Chain, place, slot int, u func(z []float64) float64) []float64 {
	return l.langevin(h, u, philox.Name{Seed: testSeed, Purpose: philox.Langevin, Sample: uint32(slot)}, func(name *philox.Name, i int) { name.Sub = uint16(place + i) })
}

// langevin is a chain whose draw number i, its start and then the noise of each
// transition, has the name that draw makes of name.
func (l loops) langevin(h Chain, u func(z []float64) float64, name philox.Name, draw func(name *philox.Name, i int)) []float64 {
	normal := func(i int) []float64 {
		x := make([]float64, l.cfg.Net.Latent)
		draw(&name, i)
		name.Normal(x)
		return x
	}
	z := normal(0)
	for k := range h.Steps {
		const eps = 1e-5
		slope := make([]float64, len(z))
		for j := range z {
			at := func(eps float64) float64 {
				moved := append([]float64(nil), z...)
				moved[j] += eps
				return u(moved)
			}
			slope[j] = (at(eps) - at(-eps)) / (2 * eps)
		}
		xi := normal(1 + k)
		for j := range z {
			z[j] += -h.Size*h.Size/2*slope[j] + h.Size*xi[j]
		}
	}
	return z
}

// posterior and prior are the potentials that the chains of a sample x descend.
func (l loops) posterior(x []float64) func(z []float64) float64 {
	return func(z []float64) float64 { return l.squares(x, z)/(2*l.cfg.Sigma*l.cfg.Sigma) + l.prior(z) }
}

func (l loops) prior(z []float64) float64 { return l.energy(z) + halfSquare(z) }

func halfSquare(z []float64) (sum float64) {
	for _, v := range z {
		sum += v * v / 2
	}
	return sum
}

// A step's chains and losses are those of plain loops, with either prior, for every
// shape of generator.
func TestAgainstLoops(t *testing.T) {
	const n = 2
	for name, cfg := range map[string]Config{
		"svhn":     tiny(same),
		"cifar10":  tiny(func(c *Config) { c.Net.Shape = CIFAR10 }),
		"celeba64": tiny(func(c *Config) { c.Net.Shape, c.Net.Channels = CelebA64, 2 }),
		"gaussian": tiny(func(c *Config) { c.Prior = Gaussian }),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, cfg)
			l := r.loops(t)
			x := r.pictures(n)
			var after, before []float64
			want := map[string]float64{}
			for i := range n {
				mine := x[i*len(x)/n : (i+1)*len(x)/n]
				posterior := l.chain(cfg.PosteriorChain, posteriorPlace, i, l.posterior(mine))
				prior := l.chain(cfg.prior(), priorPlace, i, l.prior)
				after, before = append(after, posterior...), append(before, prior...)
				want[reportRecon] += l.squares(mine, posterior) / n
				want[reportPosteriorEnergy] += l.energy(posterior) / n
				want[reportPriorEnergy] += l.energy(prior) / n
			}
			gotAfter, gotBefore := r.chains(t, n)
			for name, both := range map[string][2][]float64{"z⁺": {gotAfter, after}, "z⁻": {gotBefore, before}} {
				if err := ddptest.Near(both[0], both[1], 1e-6); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			got := r.stepped(t, n)
			for name, w := range want {
				if g, ok := got[name]; ok && !(math.Abs(g-w) <= 1e-5*(1+math.Abs(w))) {
					t.Errorf("%s is %v, want %v", name, g, w)
				}
			}
		})
	}
}
