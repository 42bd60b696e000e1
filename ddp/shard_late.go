package ddp

import (
	"cmp"
	"fmt"
	"slices"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
)

// Weights of which nothing else reads the new values in the step that makes them are
// gathered late: the step leaves each rank's part, and the next one begins with all
// gathers, in the order in which it first reads the wholes. So they travel while it
// computes what needs none of them. The whole variable is where they arrive: it then
// holds what the last step read, until Whole makes it new.

// PartName is the name of the variable that holds a rank's part of a weight that is
// gathered late.
func PartName(name string) string { return name + ".part" }

// Parts are the variables of which a rank has parts in a sharded step.
type Parts struct {
	// State is what each rank keeps a part of in place of all, under its name.
	State []Sharded
	// Late are the weights that are gathered late: all of it is the variable of that
	// name, as the last step read it, and the rank's part the one called PartName, as the
	// last step left it.
	Late []Sharded
}

// Cut sets the parts of what is gathered late to those of rank's wholes, as they have to
// be before the first step and after a whole is set.
func (p Parts) Cut(vars exec.Vars, rank int) error {
	for _, s := range p.Late {
		var mine *exec.Tensor
		if err := vars.View(s.Name, func(whole *exec.Tensor) { mine = s.PartOf(whole, rank) }); err != nil {
			return err
		}
		if err := vars.Set(PartName(s.Name), mine); err != nil {
			return err
		}
	}
	return nil
}

// Whole is the graph that makes all of what is gathered late as new as the parts are, to
// be run on all ranks before anything but the step reads it; nil if nothing is.
func (p Parts) Whole(world int) (*graph.Graph, error) {
	if len(p.Late) == 0 {
		return nil, nil
	}
	b := &graph.Builder{}
	var small []Sharded
	publish := func(label string, list ...Sharded) {
		parts, wholes := make([]graph.ID, len(list)), make([]graph.Type, len(list))
		for k, s := range list {
			parts[k], wholes[k] = b.Var(PartName(s.Name), s.Part), s.Whole
		}
		for k, whole := range gather(b, world, label, parts, wholes) {
			b.Assign(b.Var(list[k].Name, wholes[k]), whole)
		}
	}
	for _, s := range p.Late {
		if s.Whole.Bytes() >= aloneBytes {
			publish("whole "+s.Name, s)
		} else {
			small = append(small, s)
		}
	}
	for len(small) > 0 {
		typ := small[0].Whole.DType
		other := func(s Sharded) bool { return s.Whole.DType != typ }
		publish("whole weights", slices.DeleteFunc(slices.Clone(small), other)...)
		small = slices.DeleteFunc(small, func(s Sharded) bool { return !other(s) })
	}
	return b.Build()
}

// late is a weight that is gathered late.
type late struct {
	leaf, next graph.ID // the variable, and its new value
	to         graph.ID // the variable in the new graph
}

// findLate finds the weights that can be gathered late, of those that may: their new
// values are made of parts, and are nothing else's.
func (s *sharder) findLate(may map[string]bool) {
	early := make([]bool, s.g.NumValues())
	name := func(a graph.Assignment) string { return s.op(a.Var).(graph.Leaf).Name }
	for _, a := range s.g.Assigns() {
		early[a.Value] = early[a.Value] || !may[name(a)]
	}
	for _, a := range s.g.Assigns() {
		if s.in[a.Value] && !s.whole[a.Value] && !early[a.Value] && !s.isState(a.Var) {
			s.late = append(s.late, late{leaf: a.Var, next: a.Value})
			s.isLate[a.Value] = true
		}
	}
}

// startLate begins the new graph with the gathers of the late weights that the step reads,
// the first ones that it reads first.
func (s *sharder) startLate() {
	for k := range s.late {
		w := &s.late[k]
		leaf := s.op(w.leaf).(graph.Leaf)
		w.to = s.to.Var(leaf.Name, leaf.Type)
		s.part[w.leaf] = s.to.Var(PartName(leaf.Name), s.partType(leaf.Type))
	}
	first := s.firstReads()
	var due []parcel
	for _, w := range s.late {
		if first[w.leaf] < never {
			due = s.parcelOf(w.leaf, s.from[w.next]).addTo(due)
		}
	}
	begins := func(p parcel) int {
		return first[slices.MinFunc(p.ids, func(a, b graph.ID) int { return cmp.Compare(first[a], first[b]) })]
	}
	slices.SortStableFunc(due, func(p, q parcel) int { return cmp.Compare(begins(p), begins(q)) })
	for _, p := range due {
		s.gather(p)
	}
}

// never is the node that reads what none does.
const never = int(^uint(0) >> 1)

// firstReads are, by value, the first nodes that read all of it.
func (s *sharder) firstReads() []int {
	first := slices.Repeat([]int{never}, s.g.NumValues())
	for i, n := range slices.Backward(s.g.Nodes()) {
		if !s.live[i] || s.in[n.Out[0]] || s.isSum(n.Out[0]) {
			continue
		}
		for _, id := range n.In {
			first[id] = i
		}
	}
	end := len(s.g.Nodes())
	for _, o := range s.g.Outputs() {
		first[o.ID] = min(first[o.ID], end)
	}
	for _, a := range s.g.Assigns() {
		if !s.isState(a.Var) && !s.isLate[a.Value] {
			first[a.Value] = min(first[a.Value], end)
		}
	}
	return first
}

// assignLate has the step leave this rank's parts of late weights, and what it has
// gathered.
func (s *sharder) assignLate() {
	for _, w := range s.late {
		s.to.Assign(s.part[w.leaf], s.partOf(w.next))
		if s.all[w.leaf] != 0 {
			s.to.Assign(w.to, s.all[w.leaf])
		}
	}
}

// checkNames refuses a graph that has a variable of the name of a part.
func (s *sharder) checkNames() error {
	for i, n := range s.g.Nodes() {
		leaf, ok := n.Op.(graph.Leaf)
		if !ok || leaf.Kind != graph.Var || !s.live[i] {
			continue
		}
		if slices.ContainsFunc(s.late, func(w late) bool { return PartName(s.op(w.leaf).(graph.Leaf).Name) == leaf.Name }) {
			return fmt.Errorf("the step has a variable %s, the name of a rank's part of another: give it another name", leaf.Name)
		}
	}
	return nil
}
