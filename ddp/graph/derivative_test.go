package graph_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// allReduceCase stands for AllReduce, which the conformance suite tries on
// groups of ranks, outside its table.
var allReduceCase = exectest.Case{
	Name: "allreduce in a world of one",
	Args: []exectest.Arg{{Shape: graph.D(5)}, {Shape: graph.D(2, 3)}},
	Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
		return b.AllReduce(collective.Mean, "test", x...)
	},
}

// partsCase stands for the ops on vectors that ranks share, in the same way: see
// TestPartsAcrossRanks.
var partsCase = exectest.Case{
	Name: "parts in a world of one",
	Args: []exectest.Arg{{Shape: graph.D(6)}},
	Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
		y := b.ReduceScatter(collective.Mean, 1, "test", x[0])
		return []graph.ID{y, b.AllGather(1, "test", b.Sin(y)), b.Part(1, x[0]), b.Placed(1, b.Cos(x[0]))}
	},
}

// derivativeCases are the cases whose derivatives are proved: those of the
// conformance suite that are smooth where they stand, and what only matters to
// differentiation.
func derivativeCases() []exectest.Case {
	cases := slices.DeleteFunc(exectest.Cases(), func(c exectest.Case) bool { return c.NoDiff })
	vec := exectest.Arg{Shape: graph.D(5)}
	return append(cases,
		allReduceCase, partsCase,
		exectest.Case{Name: "allreduce, one result unused", Args: allReduceCase.Args, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			return b.AllReduce(collective.Sum, "test", x...)[1:]
		}},
		exectest.Case{Name: "max of x with itself", Args: []exectest.Arg{vec}, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			return []graph.ID{b.Max(x[0], x[0]), b.Min(x[0], x[0]), b.Select(b.Ones(b.Type(x[0])), x[0], b.Neg(x[0]))}
		}},
		exectest.Case{Name: "values used many times", Args: []exectest.Arg{vec}, Build: func(b *graph.Builder, x []graph.ID) []graph.ID {
			y := b.Tanh(x[0])
			return []graph.ID{b.Mul(y, b.Mul(y, x[0])), b.Add(y, y), b.Concat(0, y, x[0], y), b.Sub(b.Square(y), y)}
		}},
	)
}

// TestDerivatives proves the derivatives of every op to the third order.
func TestDerivatives(t *testing.T) {
	for _, c := range derivativeCases() {
		p := proofOf(c)
		if !slices.ContainsFunc(c.Args, p.moves) || strings.Contains(c.Name, "stopgrad") {
			continue // nothing to move; or differences see through it: TestGrad has it
		}
		t.Run(c.Name, func(t *testing.T) { p.check(t) })
	}
}

// TestRandomDerivatives proves the derivatives of smooth random graphs.
func TestRandomDerivatives(t *testing.T) {
	proved := 0
	for seed := uint64(1001); proved < 30; seed += 2 { // odd seeds are smooth
		c := exectest.RandomCase(seed)
		if strings.Contains(dumpCase(t, c), "stopgrad") {
			continue // finite differences see through it
		}
		proved++
		t.Run(c.Name, func(t *testing.T) {
			p := proofOf(c)
			p.orders, p.rel, p.abs = 1, 1e-6, 1e-8 // the case itself holds gradients of the second order
			p.check(t)
		})
	}
}

func dumpCase(t *testing.T, c exectest.Case) string {
	t.Helper()
	g, err := c.Graph(graph.F64, graph.Input)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := g.Dump(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestEveryOpHasACase reads this package's source for the types of ops, and
// fails if one is not among the cases, or a function of one is not.
func TestEveryOpHasACase(t *testing.T) {
	want := map[string]bool{}
	for _, name := range opTypes(t) {
		want[name] = true
	}
	for fn := graph.UnaryFn(1); fn < graph.NumUnaryFn; fn++ {
		want["unary "+fn.String()] = true
	}
	for fn := graph.BinaryFn(1); fn < graph.NumBinaryFn; fn++ {
		want["binary "+fn.String()] = true
	}
	for _, name := range []string{"reduce sum", "reduce max", "resample nearest", "resample bilinear", "draw normal", "draw uniform", "draw rademacher", "leaf input"} {
		want[name] = true
	}
	for _, set := range []struct {
		name  string
		cases []exectest.Case
	}{{"derivative", derivativeCases()}, {"conformance", append(exectest.Cases(), allReduceCase, partsCase)}} {
		t.Run(set.name, func(t *testing.T) {
			missing := maps.Clone(want)
			for _, c := range set.cases {
				g, err := c.Graph(graph.F64, graph.Input)
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				for i, live := range g.Live() {
					if live {
						strike(missing, g.Nodes()[i].Op)
					}
				}
			}
			for name := range missing {
				t.Errorf("no case has %s", name)
			}
		})
	}
}

// strike removes what op shows from the list of what is missing.
func strike(missing map[string]bool, op graph.Op) {
	delete(missing, reflect.TypeOf(op).Name())
	switch op := op.(type) {
	case graph.Unary:
		delete(missing, "unary "+op.Fn.String())
	case graph.Binary:
		delete(missing, "binary "+op.Fn.String())
	case graph.Reduce:
		delete(missing, "reduce "+op.Fn.String())
	case graph.Upsample2D:
		delete(missing, "resample "+op.Mode.String())
	case graph.Draw:
		delete(missing, "draw "+op.Dist.String())
	case graph.Leaf:
		delete(missing, "leaf "+op.Kind.String())
	}
}

// opTypes are the types that have a VJP method in this package's source.
func opTypes(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "VJP" && f.Recv != nil {
				names = append(names, fmt.Sprint(f.Recv.List[0].Type))
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("found only %d types of ops in the source: %v", len(names), names)
	}
	return names
}
