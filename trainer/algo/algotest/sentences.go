package algotest

import (
	"fmt"
	"slices"
	"strings"

	"ebtrain/data"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// atLength is a model of sentences whose every step is of one length.
type atLength struct {
	algo.Model
	length int
}

func (m atLength) Lengths() []int { return []int{m.length} }

func (m atLength) StepOf(length, world, batch int) (*graph.Graph, []nn.Variable, error) {
	return m.Model.(algo.Sequential).StepOf(length, world, batch)
}

// Stages are those of that length; none where the model has none.
func (m atLength) Stages(_, world, batch int) ([]chain.Stage, error) {
	return algo.StagesOf(m.Model, m.length, world, batch)
}

func (m atLength) Step(world, batch int) (*graph.Graph, []nn.Variable, error) {
	return m.StepOf(m.length, world, batch)
}

// lengths are the rigs of a model: one for each length of its batches.
func (r rig) lengths() map[string]rig {
	s, ok := r.model.(algo.Sequential)
	if !ok {
		return map[string]rig{"": r}
	}
	all := map[string]rig{}
	for _, l := range s.Lengths() {
		one := r
		one.model = atLength{r.model, l}
		all[fmt.Sprintf("%d tokens ", l)] = one
	}
	return all
}

// sentences are n of a step, of at most length tokens, and their lengths: ragged, as
// long as can be and as short.
func (r rig) sentences(step, n, length int) (tokens, lengths []float64) {
	words := len(r.model.Takes().Words)
	for i := range n {
		long := data.MinTokens + (7*i+step)%(length-data.MinTokens+1)
		row := make([]float64, length)
		row[0], row[long-1] = data.Begin, data.End
		for j := 1; j < long-1; j++ {
			row[j] = float64(data.Unknown + (5*i+3*j+step)%(words-data.Unknown))
		}
		tokens, lengths = append(tokens, row...), append(lengths, float64(long))
	}
	return tokens, lengths
}

// show fills the samples of a step, those of one rank.
func (r rig) show(p exec.Program, step int, at place) {
	first, n := at.rank*at.batch/at.world, at.batch/at.world
	if s, ok := r.model.(algo.Sequential); ok {
		l := slices.Max(s.Lengths())
		if in := p.Input(algo.InputTokens); in != nil {
			l = in.Type.Shape.At(1)
		}
		tokens, lengths := r.sentences(step, at.batch, l)
		fill(p, algo.InputTokens, tokens[first*l:(first+n)*l]...)
		fill(p, algo.InputLengths, lengths[first:first+n]...)
		return
	}
	x := r.images(step, at.batch)
	share := len(x) / at.world
	fill(p, algo.InputImages, x[at.rank*share:(at.rank+1)*share]...)
}

// samplesRead are the inputs that a step must read.
func (r rig) samplesRead() []string {
	if _, ok := r.model.(algo.Sequential); ok {
		return []string{algo.InputTokens, algo.InputLengths}
	}
	return []string{algo.InputImages}
}

// ownSentences takes the inputs of n sentences out of in, after checking their types.
func ownSentences(in map[string]graph.Type, n int) error {
	tokens, has := in[algo.InputTokens]
	if !has {
		return nil
	}
	if s := tokens.Shape; tokens.DType != graph.I32 || s.Rank() != 2 || s.At(0) != n {
		return fmt.Errorf("the input %s is %v, want i32 of %d sentences", algo.InputTokens, tokens, n)
	}
	if got, want := in[algo.InputLengths], graph.T(graph.I32, n); got != want {
		return fmt.Errorf("the input %s is %v, want %v", algo.InputLengths, got, want)
	}
	delete(in, algo.InputTokens)
	delete(in, algo.InputLengths)
	return nil
}

// sameVariables: steps of all lengths have the variables of the longest.
func sameVariables(m algo.Model, batch int) error {
	s, ok := m.(algo.Sequential)
	if !ok {
		return nil
	}
	_, want, err := m.Step(1, batch)
	if err != nil {
		return err
	}
	lengths := s.Lengths()
	if len(lengths) == 0 || len(lengths) > data.MaxBuckets || !slices.IsSorted(lengths) {
		return fmt.Errorf("batches of lengths %v: want 1 to %d that rise", lengths, data.MaxBuckets)
	}
	for _, l := range lengths {
		_, got, err := s.StepOf(l, 1, batch)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(got, want, func(a, b nn.Variable) bool { return a.Name == b.Name && a.Type == b.Type && a.Role == b.Role }) {
			return fmt.Errorf("a step of %d tokens has other variables than one of the longest", l)
		}
	}
	return nil
}

// literate: −log p of each sentence and what is told of it, at every length.
func literate(u user, m algo.Literate) error {
	for _, l := range u.model.(algo.Sequential).Lengths() {
		g, err := m.NLL(l, samples)
		if err := u.looks(g, err, map[string][]int{algo.OutputLoss: {samples}, algo.OutputTold: {samples}}); err != nil {
			return fmt.Errorf("%d tokens: %w", l, err)
		}
	}
	return nil
}

// recollects: −log p of each sentence and what is told of it, twice, at every length.
func recollects(u user, m algo.Recollecting) error {
	for _, l := range u.model.(algo.Sequential).Lengths() {
		stages, vars, err := m.Inferring(l, samples)
		if err != nil {
			return fmt.Errorf("%d tokens: %w", l, err)
		}
		for _, v := range vars {
			if !strings.HasPrefix(v.Name, chain.Prefix) {
				return fmt.Errorf("%d tokens: the variable %s: want a name that begins with %q", l, v.Name, chain.Prefix)
			}
		}
		if err := nn.Initialise(u.vars, vars, seed); err != nil {
			return err
		}
		g, err := m.Recon(l, samples)
		if err := u.looksAfter(stages, g, err, map[string][]int{algo.OutputLoss: {samples}, algo.OutputTold: {samples}, algo.OutputBlind: {samples}, algo.OutputBlindTold: {samples}}); err != nil {
			return fmt.Errorf("%d tokens: %w", l, err)
		}
	}
	return nil
}
