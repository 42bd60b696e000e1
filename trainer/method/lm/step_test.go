package lm

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// built is a step of two sentences of up to six tokens, in float64.
func built(t *testing.T, c *Config) (*graph.Graph, []nn.Variable) {
	t.Helper()
	x := nn.NewContext(nn.Train, 1)
	x.DType = graph.F64
	c.Model().(model).build(x, 6, 2)
	g, err := x.Commit()
	if err != nil {
		t.Fatal(err)
	}
	return g, x.Variables()
}

// The gradient is cut to --clip, and the report has its length as it was.
func TestClip(t *testing.T) {
	const clip = 0.01
	stepped := func(clip float64) (moments, reported float64) {
		c := tiny(t)
		c.Clip = clip
		g, specs := built(t, c)
		vars := ddptest.NewVars()
		if err := nn.Initialise(vars, specs, 7); err != nil {
			t.Fatal(err)
		}
		out, err := ddptest.Run(g, vars, nil, ddptest.Values{algo.InputTokens: {1, 4, 5, 2, 0, 0, 1, 6, 3, 5, 4, 2}, algo.InputLengths: {4, 6},
			algo.InputKey: {7, 0, 0}, algo.InputStop: {0}, c.Adam.Input(): {0, 1}})
		if err != nil {
			t.Fatal(err)
		}
		squares := 0.0
		for _, name := range vars.Names() {
			if strings.HasPrefix(name, "adam.") && strings.HasSuffix(name, ".m") {
				x, err := vars.Get(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range ddptest.Numbers(x) {
					squares += m * m
				}
			}
		}
		report := out[algo.OutputReport]
		return math.Sqrt(squares) / (1 - c.Adam.Beta1), report[len(report)-1] // of the first step
	}
	whole, length := stepped(1e9)
	cut, same := stepped(clip)
	if !(math.Abs(whole/length-1) <= 1e-6) || length < 2*clip {
		t.Errorf("a gradient that is not cut has length %v, and the report %v", whole, length)
	}
	if !(math.Abs(cut/clip-1) <= 1e-6) || same != length {
		t.Errorf("a gradient of length %v that is cut to %v has length %v, and the report %v", length, clip, cut, same)
	}
}

// What a step draws is dropout of embeddings and of hidden units, by the names
// that runs that go on have drawn by; without it, nothing.
func TestNamesOfDraws(t *testing.T) {
	for dropout, want := range map[float64]string{0.5: "uniform 19.0, uniform 19.1", 0: ""} {
		c := tiny(t)
		c.Dropout = dropout
		g, _ := built(t, c)
		live, names := g.Live(), []string{}
		for i, n := range g.Nodes() {
			if d, ok := n.Op.(graph.Draw); ok && live[i] {
				names = append(names, fmt.Sprintf("%s %d.%d", d.Dist, d.Purpose, d.Sub))
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, ", "); got != want {
			t.Errorf("a step with --dropout %v draws %q, want %q", dropout, got, want)
		}
	}
}
