package feature

import (
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// variables are those of the features.
func (n Net) variables(t *testing.T) []nn.Variable {
	t.Helper()
	c := nn.NewContext(nn.Eval, 1)
	n.trunk.Features(c, c.Input(inputPictures, graph.T(graph.F32, 1, n.Size.C, n.Size.H, n.Size.W)))
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	return c.Variables()
}
