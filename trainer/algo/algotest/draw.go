package algotest

import (
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// drawName is what tells the draws of a graph apart.
type drawName struct {
	key     graph.ID
	purpose philox.Purpose
	sub     uint16
}

// namesDraws: no two draws of a step have one name. They would be made of the same random
// words, and a chain's noise be that of its start.
func (r rig) namesDraws() error {
	g, _, err := r.model.Step(1, r.batch())
	if err != nil {
		return err
	}
	seen := map[drawName]graph.Draw{}
	for i, live := range g.Live() {
		n := g.Nodes()[i]
		draw, ok := n.Op.(graph.Draw)
		if !ok || !live {
			continue
		}
		name := drawName{n.In[0], draw.Purpose, draw.Sub}
		if other, ok := seen[name]; ok && other != draw {
			return fmt.Errorf("%v of %v and %v of %v have the same random words: give one of them another sub", other, other.Type, draw, draw.Type)
		}
		seen[name] = draw
	}
	return nil
}
