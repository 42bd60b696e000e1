package bidvl

import (
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/algo/algotest"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// onNetworks is a model with networks that no config names. It can only train.
type onNetworks struct {
	algo.Model
	rig
}

func (m onNetworks) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	s := m.step(world, batch)
	g, err := s.Commit()
	return g, s.Variables(), err
}

// onHalf is a case on convolutional networks of half the size.
func onHalf(name string, change func(c *Config)) algotest.Case {
	net := nets.Conv{Size: 16, Channels: 3, Width: 4, Latent: 4}
	c := CIFAR10().Config
	c.Net.Size, c.Net.Latent = net.Size, net.Latent
	change(&c)
	steady(&c)
	return algotest.Case{Name: name, Model: onNetworks{c, rig{cfg: c, net: net, dtype: graph.F32}}}
}

// steady makes steps that differ by rounding where gradients do: with ε = 1e-8 a
// weight whose gradient is rounding alone takes a whole step.
func steady(c *Config) {
	c.Upper.Eps, c.Lower.Eps = 1e-3, 1e-3
	if c.Generator != nil {
		c.Generator.Eps = 1e-3
	}
}

func TestConforms(t *testing.T) {
	small := data.Schema{C: 3, H: 32, W: 32}
	published := map[string]data.Schema{
		"bidvl-cifar10": small, "bidvl-svhn": small, "bidvl-celeba32": small, "bidvl-cifar10-resnet": small,
		"bidvl-celeba64": {C: 3, H: 64, W: 64}, "bidvl-celeba128": {C: 3, H: 128, W: 128},
	}
	whole, residual := smallConfig(), CIFAR10ResNet().Config
	residual.Net.Width, residual.Net.Latent, residual.Net.Channels = 1, 3, 1
	steady(&whole)
	steady(&residual)
	cases := []algotest.Case{{Name: "convolutional", Config: &whole}, {Name: "residual", Config: &residual}}
	if testing.Short() { // the race detector sees no more in the others
		algotest.Run(t, Method(), published, cases[0])
		return
	}
	algotest.Run(t, Method(), published, append(cases,
		onHalf("lower level first", func(c *Config) {
			c.Order, c.LowerSteps, c.FreshLatent, c.LatentTerm, c.Ratio = LowerFirst, 2, true, NotOffset, SigmoidRatio
		}),
		onHalf("undecoupled", func(c *Config) { c.Undecoupled = true }))...)
}
