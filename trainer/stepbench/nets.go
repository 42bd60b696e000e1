package main

import (
	"maps"
	"slices"
	"strings"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/stepbench/workload"
)

// model is what stepbench asks of a training algorithm: of algo.Model, the part
// that is about steps.
type model interface {
	Step(world, batch int) (*graph.Graph, []nn.Variable, error)
	Report() []algo.Column
	Feeder(p exec.Program) func(step int64, epoch int)
	Validate() error
}

// net is an entry of --net: its sizes (0 where it has none to choose) and how
// it is made.
type net struct {
	bench                string // the peers' name of the benchmark
	width, latent, batch int
	low                  float64 // data lie in [low, 1]
	make                 func(o *options) (model, error)
}

// nets are the values of --net.
var nets = map[string]net{
	"conv32":        {"bidvl_step", 64, 100, 100, -1, bidvlNet},
	"conv64":        {"bidvl_step", 64, 100, 50, -1, bidvlNet},
	"resnet32":      {"bidvl_step", 64, 128, 100, -1, bidvlNet},
	"resnet128":     {"bidvl_step", 64, 128, 8, -1, bidvlNet},
	"lebm-pictures": {"lebm_pictures_step", 16, 128, 100, -1, lebmPictures},
	"lebm-text":     {"lebm_text_step", 64, 32, 32, 0, lebmText},
	"vages-mnist":   {"vages_mnist_step", 8, 50, 100, 0, vagesMNIST},
	"grbm-bidsm": {"grbm_bidsm_step", 0, 400, 100, 0, func(o *options) (model, error) {
		m := workload.Frey()
		m.Hidden = o.latent
		return m, onlyBidvl(o)
	}},
	"conv-sm": {"conv_sm_step", 32, 0, 64, 0, func(o *options) (model, error) {
		m := workload.SmallConv()
		m.Width = o.width
		return m, onlyBidvl(o)
	}},
}

// bidvlNet is BiDVL with the networks called --net and the paper's settings
// for them.
func bidvlNet(o *options) (model, error) {
	p, err := bidvl.PresetFor(o.net)
	if err != nil {
		return nil, err
	}
	c := p.Config
	c.Net.Width, c.Net.Latent = o.width, o.latent
	c.FreshLatent = c.FreshLatent || o.freshLatent
	return c, nil
}

// onlyBidvl refuses the switches of bidvl for another algorithm.
func onlyBidvl(o *options) error {
	if o.freshLatent {
		return cliflag.Usage("--fresh-latent is not a switch of --net %s", o.net)
	}
	return nil
}

func (n net) model(o *options) (model, error) {
	m, err := n.make(o)
	if err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, &cliflag.UsageError{Err: err}
	}
	return m, nil
}

func netNames() string { return strings.Join(slices.Sorted(maps.Keys(nets)), ", ") }
