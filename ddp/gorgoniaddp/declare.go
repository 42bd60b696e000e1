package gorgoniaddp

import (
	"context"
	"encoding/json"
	"fmt"

	"gorgonia.org/gorgonia"

	"ebtrain/collective"
)

// A declaration is what one rank says about its replica before step 0.
type declaration struct {
	Problem string   // why this rank cannot start; empty if it can
	Lines   []string // settings and learnables: equal on all ranks
}

// describe checks this rank's learnables and settings and puts them in words.
// It returns the memory of the values too, unless there is a problem.
func describe(nodes gorgonia.Nodes, cfg Config) (declaration, []collective.Vec) {
	init := "broadcast from rank 0"
	if cfg.VerifyInit {
		init = "verified"
	}
	d := declaration{Lines: []string{
		fmt.Sprintf("buckets of %d bytes", cfg.BucketBytes),
		"initial values " + init,
	}}
	if err := cfg.Validate(); err != nil {
		d.Problem = err.Error()
		return d, nil
	}
	if len(nodes) == 0 {
		d.Problem = "no learnables given"
		return d, nil
	}
	mems := make([]collective.Vec, len(nodes))
	seen := map[*gorgonia.Node]int{}
	for i, n := range nodes {
		mem, err := checkLearnable(n)
		if j, again := seen[n]; again && err == nil {
			err = fmt.Errorf("the same node as %d; give each learnable once", j)
		}
		if err != nil {
			d.Problem = fmt.Sprintf("%s: %v", nameOf(nodes, i), err)
			return d, nil
		}
		seen[n] = i
		mems[i] = mem
		d.Lines = append(d.Lines, fmt.Sprintf("%s %v %v", nameOf(nodes, i), n.Dtype(), n.Shape()))
	}
	return d, mems
}

// checkLearnable returns the memory of n's value, or why n cannot be trained.
func checkLearnable(n *gorgonia.Node) (collective.Vec, error) {
	if n == nil {
		return collective.Vec{}, fmt.Errorf("is nil")
	}
	if n.Value() == nil {
		return collective.Vec{}, fmt.Errorf("has no value; give it one with WithInit, WithValue or Let")
	}
	if n.Deriv() == nil {
		return collective.Vec{}, fmt.Errorf("has no derivative; give it to gorgoniaddp.Grad with the cost, before the machine is made")
	}
	if v := n.Value(); v.Dtype() != n.Dtype() || !v.Shape().Eq(n.Shape()) {
		return collective.Vec{}, fmt.Errorf("is %v %v, but its value is %v %v; bind a value of the node's own type and shape",
			n.Dtype(), n.Shape(), v.Dtype(), v.Shape())
	}
	return memoryOf(n.Value())
}

// nameOf is node i in words, for errors and declarations.
func nameOf(nodes gorgonia.Nodes, i int) string {
	if nodes[i] == nil {
		return fmt.Sprintf("node %d", i)
	}
	return fmt.Sprintf("node %d %q", i, nodes[i].Name())
}

// compare exchanges the declarations of all ranks. The error is the same on
// every rank: the first problem, or the first difference from rank 0.
func compare(ctx context.Context, comm collective.Comm, mine declaration) error {
	text, err := json.Marshal(mine)
	if err != nil {
		return fmt.Errorf("gorgoniaddp: declaration: %w", err)
	}
	texts, err := collective.GatherBytes(ctx, comm, "declaration", text)
	if err != nil {
		return fmt.Errorf("gorgoniaddp: declaration: %w", err)
	}
	all := make([]declaration, len(texts))
	for rank, t := range texts {
		if err := json.Unmarshal(t, &all[rank]); err != nil {
			return fmt.Errorf("gorgoniaddp: declaration of rank %d: %w", rank, err)
		}
	}
	for rank, d := range all {
		if d.Problem != "" {
			return fmt.Errorf("gorgoniaddp: rank %d: %s", rank, d.Problem)
		}
	}
	for rank, d := range all {
		if a, b, differ := firstDifference(all[0].Lines, d.Lines); differ {
			return fmt.Errorf("gorgoniaddp: models differ: rank 0 has %s where rank %d has %s: %w", a, rank, b, collective.ErrMismatch)
		}
	}
	return nil
}

// firstDifference is the first line in which a and b differ.
func firstDifference(a, b []string) (inA, inB string, differ bool) {
	line := func(s []string, i int) string {
		if i < len(s) {
			return s[i]
		}
		return "no more nodes"
	}
	for i := range max(len(a), len(b)) {
		if inA, inB = line(a, i), line(b, i); inA != inB {
			return inA, inB, true
		}
	}
	return "", "", false
}
