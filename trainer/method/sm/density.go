package sm

import (
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/eblvm"
	"ebtrain/trainer/model/grbm"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/score"
)

// density is the model whose score is matched.
type density interface {
	declare(c *nn.Context) []nn.Param
	// shape is that of a sample as the density sees it.
	shape() graph.Shape
	// score is ∇log p at v (B, shape).
	score(c *nn.Context, v graph.ID) graph.ID
}

// machine is a GRBM, of vectors.
type machine struct{ grbm.Size }

func (m machine) declare(c *nn.Context) []nn.Param { return m.Declare(c) }
func (m machine) shape() graph.Shape               { return graph.D(m.Visible) }

func (m machine) params(c *nn.Context) grbm.Params { return grbm.Of(nn.IDs(m.Declare(c))) }

func (m machine) score(c *nn.Context, v graph.ID) graph.ID { return m.params(c).Score(c, v) }

// network is a visible energy-based model, of pictures.
type network struct{ eblvm.Trunk }

func (n network) declare(c *nn.Context) []nn.Param { return n.DeclareVisible(c) }
func (n network) shape() graph.Shape               { return graph.D(n.Channels, n.Size, n.Size) }

func (n network) score(c *nn.Context, v graph.ID) graph.ID {
	return score.Of(c, c.Neg(n.VisibleEnergy(c, v)), v)
}

func (c *Config) density() density {
	if c.Net.Kind == EBM {
		return network{c.Net.trunk()}
	}
	return machine{c.Net.grbm()}
}
