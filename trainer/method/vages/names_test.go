package vages

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
)

// The names of the variables are those that checkpoints have, and those of the report's
// entries those that metrics have.
func TestNames(t *testing.T) {
	m := modelOf(tinyUnits(func(*Config) {}))
	_, specs, err := m.Step(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range specs {
		got = append(got, v.Name)
	}
	slices.Sort(got)
	want := map[string]bool{}
	for optimiser, names := range map[string][]string{"upper": {"model.s", "model.w", "model.b", "model.c"}, "lower": {"posterior.weight", "posterior.bias"}} {
		for _, name := range names {
			want[name], want["adam."+optimiser+"."+name+".m"], want["adam."+optimiser+"."+name+".v"] = true, true, true
		}
	}
	if w := slices.Sorted(maps.Keys(want)); !slices.Equal(got, w) {
		t.Errorf("the variables are %v, want %v", got, w)
	}
	if got, want := strings.Join(algo.Names(m.Report()), " "), "upper lower stop grad_model"; got != want {
		t.Errorf("the report has %s, want %s", got, want)
	}
}

// draws are the names of all draws of a graph, sorted: purpose and place. Nodes of one
// name are one node.
func draws(t *testing.T, g *graph.Graph, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	live := g.Live()
	for i, n := range g.Nodes() {
		if d, ok := n.Op.(graph.Draw); ok && live[i] {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(d.String(), "draw{"), "}"))
		}
	}
	slices.Sort(names)
	return strings.ReplaceAll(strings.Join(slices.Compact(names), ", "), " purpose", "")
}

// What a step draws has the names that runs that go on have drawn by: 10 is the noise of
// what is seen, 11 are latents, 12 projections and 17 refinement, whose places are those of
// the upper level's three sets, 0 to 2, and of the lower steps behind them. All sets are
// drawn apart.
func TestNamesOfDraws(t *testing.T) {
	units := func(change func(*Config)) Config {
		return tinyUnits(func(c *Config) { c.LowerSteps = 2; change(c) })
	}
	for want, c := range map[string]Config{
		"normal 10.0, normal 10.3, normal 10.4, uniform 11.0, uniform 11.1, uniform 11.2, uniform 11.3, uniform 11.4": units(func(*Config) {}),
		"normal 10.0, normal 10.3, normal 10.4, uniform 11.0, uniform 11.1, uniform 11.3, uniform 11.4":               units(func(c *Config) { c.WithoutCovariance = true }),
		"rademacher 12.0, uniform 11.0, uniform 11.1, uniform 11.2, uniform 11.3, uniform 11.4":                       units(func(c *Config) { c.Objective = SSM }),
		"uniform 11.0, uniform 11.1, uniform 11.2, uniform 11.3, uniform 11.4":                                        units(func(c *Config) { c.Objective = KSD }),
		"normal 10.0":               units(func(c *Config) { c.Estimator = Exact }),
		"normal 10.0, uniform 11.0": units(func(c *Config) { c.Estimator = Importance }),
		"normal 10.0, normal 10.3, normal 11.0, normal 11.1, normal 11.2, normal 11.3, normal 17.0, normal 17.1, normal 17.1000, normal 17.1001, normal 17.2000, normal 17.2001": tinyNetworks(func(c *Config) { c.LowerSteps = 1 }),
	} {
		g, _, err := c.Model().Step(1, 2)
		if got := draws(t, g, err); got != want {
			t.Errorf("a step of %s, %s draws %s, want %s", c.Objective, c.Estimator, got, want)
		}
	}
	// What is measured sees and draws as the upper level does.
	c := units(func(*Config) {})
	g, err := c.Model().(algo.Losing).Loss(2)
	if got, want := draws(t, g, err), "normal 10.0, uniform 11.0"; got != want {
		t.Errorf("a loss draws %s, want %s", got, want)
	}
	g, err = c.Model().(algo.Inferred).PosteriorGap(2)
	if got, want := draws(t, g, err), "normal 10.0"; got != want {
		t.Errorf("the gap of a machine draws %s, want %s", got, want)
	}
	deep := tinyNetworks(func(*Config) {})
	g, err = deep.Model().(algo.Inferred).PosteriorGap(2)
	if got, want := draws(t, g, err), "normal 10.0, normal 11.0"; got != want {
		t.Errorf("the gap of a deep model draws %s, want %s", got, want)
	}
}
