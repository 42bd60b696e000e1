package hypercheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/floats"

	"ebtrain/collective"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

const (
	// Tolerance is how far the gradient of n ranks may be from one process's: sums
	// in another order, in float64, with room for what depends on them.
	Tolerance = 1e-10
	// DifferencesTolerance is the same for central differences, whose own error in
	// float64 is about 1e-10 at best, and more where J is large beside its slope:
	// see allowed.
	DifferencesTolerance = 1e-6
	// least is the size below which a network's gradient is judged as a part of
	// the whole gradient: rounding in what both are made of is no fault.
	least = 1e-5
)

// Table is what a check found.
type Table struct {
	Ranks     int
	Simulated bool    // the ranks were goroutines of one process
	Upper     float64 // J of one process on the whole batch
	UpperDiff float64 // how far J of the ranks is from it, relative
	Networks  []Network
}

// Network is a row of the table: differences of the gradient in the network's
// variables from one process's, in norm, relative to its own (or to 1e-5 of the
// whole gradient's, if that is more).
type Network struct {
	Name string  // the first part of its variables' names
	Size int     // numbers in its variables
	Norm float64 // of its gradient

	Ranks       float64 // n ranks
	Differences float64 // of n ranks along random directions, to central differences
	Allowed     float64 // the most that Differences may be, DifferencesTolerance or more at small steps
	Verdict     Verdict // of central differences
	NoAdjoint   float64 // n ranks, inner all-reduces without adjoints: wrong
	Local       float64 // n ranks, inner steps on local gradients: wrong

	variables []string
	sizes     map[string]int
	scale     float64
	judged    []judged // of each direction
}

// newTable has a row for each network of the whole batch's gradient.
func newTable(whole gradient, ranks int) *Table {
	t := &Table{Ranks: ranks, Upper: whole.upper}
	index := map[string]int{}
	total := 0.0
	for _, name := range whole.names {
		network := nn.NetworkOf(name)
		i, ok := index[network]
		if !ok {
			i = len(t.Networks)
			index[network] = i
			t.Networks = append(t.Networks, Network{Name: network, sizes: map[string]int{}})
		}
		n, g := &t.Networks[i], whole.of[name]
		n.variables, n.sizes[name] = append(n.variables, name), len(g)
		n.Size += len(g)
		n.Norm = math.Hypot(n.Norm, floats.Norm(g, 2))
		total = math.Hypot(total, floats.Norm(g, 2))
	}
	for i := range t.Networks {
		n := &t.Networks[i]
		n.scale = max(n.Norm, least*total)
	}
	return t
}

// compare notes how far g, computed on n ranks, is from the whole batch's.
func (t *Table) compare(inner algo.Inner, g, whole gradient) {
	if inner == algo.AllReduced {
		t.UpperDiff = ratio(math.Abs(g.upper-whole.upper), math.Abs(whole.upper))
	}
	for i := range t.Networks {
		n := &t.Networks[i]
		far := 0.0
		for _, name := range n.variables {
			far = math.Hypot(far, distance(g.of[name], whole.of[name]))
		}
		*n.column(inner) = ratio(far, n.scale)
	}
}

// distance is ‖a − b‖; NaN where they are not of one length.
func distance(a, b []float64) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	return floats.Distance(a, b, 2)
}

func (n *Network) column(inner algo.Inner) *float64 {
	switch inner {
	case algo.NoAdjoint:
		return &n.NoAdjoint
	case algo.Local:
		return &n.Local
	}
	return &n.Ranks
}

// ratio is a/b, 0 for 0/0; what is no number is infinite, so that no comparison
// passes it by.
func ratio(a, b float64) float64 {
	switch r := a / b; {
	case a == 0 && b == 0:
		return 0
	case math.IsNaN(r):
		return math.Inf(1)
	default:
		return r
	}
}

// merge takes the largest differences over all ranks.
func (t *Table) merge(ctx context.Context, comm collective.Comm) error {
	all := []*float64{&t.UpperDiff}
	for i := range t.Networks {
		n := &t.Networks[i]
		all = append(all, &n.Ranks, &n.NoAdjoint, &n.Local)
		for k := range n.judged {
			j := &n.judged[k]
			all = append(all, &j.verdict, &j.off, &j.allowed)
		}
	}
	v := make([]float64, len(all))
	for i, p := range all {
		v[i] = *p
	}
	err := collective.Do(ctx, comm, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(v), Label: "differences of hypergradients"})
	for i, p := range all {
		*p = v[i]
	}
	for i := range t.Networks {
		t.Networks[i].conclude()
	}
	return err
}

// conclude takes the worst of the directions. A gradient that is wrong is so along
// nearly all directions, and a kink that all steps but the smallest reach over looks
// like a wrong slope along one: where one direction of several is alone in refuting the
// gradient, differences cannot tell.
func (n *Network) conclude() {
	worst, refuting := n.judged[0], 0
	for _, j := range n.judged {
		if j.worse(worst) {
			worst = j
		}
		if Verdict(j.verdict) == Wrong {
			refuting++
		}
	}
	n.Verdict, n.Differences, n.Allowed = Verdict(worst.verdict), worst.off, worst.allowed
	if refuting == 1 && len(n.judged) > 1 && !math.IsInf(worst.off, 0) {
		n.Verdict = Unclear
	}
}

// Err says in a sentence each what is wrong with the gradient, nil if nothing.
func (t *Table) Err() error {
	var errs []error
	report := func(what string, got, tolerance float64) {
		if !(got <= tolerance) {
			errs = append(errs, fmt.Errorf("%s by %.2g, expected at most %.2g", what, got, tolerance))
		}
	}
	report(fmt.Sprintf("upper loss: %d ranks differ from one process", t.Ranks), t.UpperDiff, Tolerance)
	for _, n := range t.Networks {
		report(fmt.Sprintf("gradient of %s: %d ranks differ from one process", n.Name, t.Ranks), n.Ranks, Tolerance)
		switch n.Verdict {
		case Unclear:
			errs = append(errs, fmt.Errorf("gradient of %s: central differences cannot tell whether it is right, since the upper loss has kinks, at every step from 1e-3 to 1e-7 or so near that they look like a slope: take another seed or batch", n.Name))
		case Wrong:
			report(fmt.Sprintf("gradient of %s: it differs from central differences", n.Name), n.Differences, n.Allowed)
		}
	}
	return errors.Join(errs...)
}

// Write writes the table as text: what was compared, and a line for each network.
func (t *Table) Write(w io.Writer) error {
	of := ""
	if t.Simulated {
		of = " in one process"
	}
	if _, err := fmt.Fprintf(w, "upper loss %.9g; on %d ranks%s it differs by %.1e\n", t.Upper, t.Ranks, of, t.UpperDiff); err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "network\tnumbers\tgradient\t%d ranks\tdifferences\tallowed\twithout adjoint\tlocal steps\tverdict\n", t.Ranks)
	for _, n := range t.Networks {
		verdict := n.Verdict
		if !(n.Ranks <= Tolerance) {
			verdict = Wrong
		}
		fmt.Fprintf(&text, "%s\t%d\t%.4g\t%.1e\t%.1e\t%.1e\t%.1e\t%.1e\t%s\n", n.Name, n.Size, n.Norm, n.Ranks, n.Differences, n.Allowed, n.NoAdjoint, n.Local, verdict)
	}
	tab := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	if _, err := io.WriteString(tab, text.String()); err != nil {
		return err
	}
	return tab.Flush()
}
