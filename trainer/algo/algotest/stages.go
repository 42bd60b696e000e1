package algotest

import (
	"errors"
	"fmt"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// chains: stages before a step take what all take but whether to stop, have no outputs,
// and assign the step's variables of role nn.Scratch and no others.
func (r rig) chains() error {
	_, specs, err := r.model.Step(1, r.batch())
	if err != nil {
		return err
	}
	role := map[string]nn.Role{}
	for _, v := range specs {
		role[v.Name] = v.Role
	}
	all, err := r.stages(1, r.batch(), asIs)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := r.chain(s.Graph, role); err != nil {
			return fmt.Errorf("stage %s: %w", s.Name, err)
		}
		if s.Times < 1 {
			return fmt.Errorf("stage %s: it is run %d times", s.Name, s.Times)
		}
	}
	return nil
}

func (r rig) chain(g *graph.Graph, role map[string]nn.Role) error {
	in := inputsOf(g)
	if _, stop := in[algo.InputStop]; stop || len(g.Outputs()) > 0 || len(g.Assigns()) == 0 {
		return errors.New("want a chain, which does not ask whether to stop, has no output, and assigns its state")
	}
	if _, tokens := in[algo.InputTokens]; !tokens {
		delete(in, algo.InputLengths)
	}
	if err := r.own(in, r.batch()); err != nil || len(in) > 0 {
		return errors.Join(err, fmt.Errorf("it takes %v: want shared inputs only", in))
	}
	for _, a := range g.Assigns() {
		leaf, ok := g.Nodes()[g.NodeOf(a.Var)].Op.(graph.Leaf)
		if !ok || role[leaf.Name] != nn.Scratch {
			return fmt.Errorf("it assigns %s, which is no variable of the step of role %v", leaf.Name, nn.Scratch)
		}
	}
	return nil
}
