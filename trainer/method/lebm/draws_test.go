package lebm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// draws are those of a graph under construction.
func draws(t *testing.T, c *nn.Context) string {
	t.Helper()
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return drawsOf(g)
}

// drawsOf are the names of all draws of a graph, sorted: purpose and place. Nodes of one
// name are one node.
func drawsOf(g *graph.Graph) string {
	var names []string
	live := g.Live()
	for i, n := range g.Nodes() {
		if d, ok := n.Op.(graph.Draw); ok && live[i] {
			names = append(names, fmt.Sprintf("%s %d.%d", d.Dist, d.Purpose, d.Sub))
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// What a step draws has the names that runs that go on have drawn by, and no draw that
// of another: 18 is the chains', 19 dropout.
func TestNamesOfDraws(t *testing.T) {
	const chains = "normal 18.0, normal 18.1, normal 18.1001, normal 18.1002, normal 18.1003, normal 18.2, normal 18.3"
	const dropout = ", uniform 19.0, uniform 19.1"
	cfg := tiny(func(c *Config) { c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2 })
	c := nn.NewContext(nn.Train, 1)
	newStep(c, cfg, 2).build()
	if got := draws(t, c); got != chains {
		t.Errorf("a step of pictures draws %s, want %s", got, chains)
	}
	cfg.Prior = Gaussian
	c = nn.NewContext(nn.Train, 1)
	newStep(c, cfg, 2).build()
	if got, want := draws(t, c), "normal 18.0, normal 18.1001, normal 18.1002, normal 18.1003"; got != want {
		t.Errorf("a step with a fixed prior draws %s, want %s", got, want)
	}
	sentences := tinyText(t, func(c *Config) { c.PriorChain.Steps, c.PosteriorChain.Steps = 3, 2 })
	c = nn.NewContext(nn.Train, 1)
	newReading(c, sentences, 6, 2).build()
	if got := draws(t, c); got != chains+dropout {
		t.Errorf("a step of sentences draws %s, want %s", got, chains+dropout)
	}
	sentences.Text.Dropout = 0
	c = nn.NewContext(nn.Train, 1)
	newReading(c, sentences, 6, 2).build()
	if got := draws(t, c); got != chains {
		t.Errorf("a step without dropout draws %s, want %s", got, chains)
	}
}

// The posterior's chain leaves nothing out: its slope is that of one function.
func TestChainHasNoDropout(t *testing.T) {
	c := nn.NewContext(nn.Train, 1)
	s := newReading(c, tinyText(t, func(c *Config) { c.PosteriorChain.Steps = 2 }), 6, 2)
	c.Output("z", s.posterior(s.key, s.x))
	if got, want := draws(t, c), "normal 18.1001, normal 18.1002, normal 18.1003"; got != want {
		t.Errorf("it draws %s, want %s", got, want)
	}
}
