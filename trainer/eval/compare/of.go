package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"ebtrain/trainer/eval"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/quality"
)

const (
	scoreParts     = 10 // of an inception score
	leastScore     = 2 * scoreParts
	mostNeighbours = 1000 // samples whose nearest training picture is looked for
	directions     = 512
	mostPatches    = 1 << 15 // of a set and a level, about
	patchesOfEach  = 128     // of a picture at most
)

// Of are the numbers of a set, and sentences about those that it cannot have. Only
// the first rank gets any.
func (j *Judge) Of(ctx context.Context, set Set) (values []Value, notes []string, err error) {
	n := j.count(set)
	if n < 1 || n*j.c.Size.Len() != len(set.X) {
		return nil, nil, fmt.Errorf("%s: %d values, want at least two %ss of %v", set.Name, len(set.X), j.noun(), j.c.Size)
	}
	if err := finite(set); err != nil {
		return nil, nil, err
	}
	if j.c.Size.Vector() {
		set.X = j.scale.of(set.X)
	}
	t := &table{sums: map[string][]float64{}, spread: map[string]float64{}}
	if n == 1 {
		if j.first {
			t.note("%s: %s, and a comparison wants at least 2", set.Name, j.samples(n))
		}
		return nil, t.notes, nil
	}
	for _, s := range j.spaces {
		features, err := j.features(ctx, s, set)
		if err != nil {
			return nil, nil, err
		}
		if !j.first {
			continue
		}
		if s.Extractor != nil {
			j.c.Tell(fmt.Sprintf("%s: measured by %s", set.Name, s.Name))
		}
		if err := j.inSpace(ctx, t, s, set.Name, s.standard(features)); err != nil {
			return nil, nil, err
		}
	}
	for _, by := range j.scores {
		if err := j.score(ctx, t, by, set); err != nil {
			return nil, nil, err
		}
	}
	if j.first {
		err = errors.Join(j.sliced(ctx, t, set), j.told(ctx, t, set), j.nearest(ctx, t, set))
	}
	return t.values(), t.notes, err
}

// score is the inception score of a set.
func (j *Judge) score(ctx context.Context, t *table, by scorer, set Set) error {
	probabilities, err := by.Of(ctx, j.c.Comm, set.X)
	if err != nil || !j.first {
		return err
	}
	if probabilities.N < leastScore {
		t.note("%s: %s, and an inception score wants at least %d", set.Name, j.samples(probabilities.N), leastScore)
		return nil
	}
	mean, sd, err := quality.InceptionScore(probabilities, scoreParts)
	if err != nil {
		return err
	}
	t.add(by.row, mean)
	t.spread[by.row] = sd
	return nil
}

// finite reports a value that is not.
func finite(set Set) error {
	for i, v := range set.X {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return eval.NotFinite("training diverged: value %d of the %s is %v", i, set.Name, v)
		}
	}
	return nil
}

// table gathers numbers, several of a row where networks have it together.
type table struct {
	sums   map[string][]float64
	spread map[string]float64
	notes  []string
}

func (t *table) add(row string, v float64) { t.sums[row] = append(t.sums[row], v) }

func (t *table) values() (all []Value) {
	for _, row := range Rows() {
		v := t.sums[row.Name]
		if len(v) == 0 {
			continue
		}
		s, err := eval.SpreadOf(v)
		if err != nil { // of a number that is not finite: it is shown as it is
			all = append(all, Value{Row: row.Name, Value: v[slices.IndexFunc(v, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })]})
			continue
		}
		if sd, ok := t.spread[row.Name]; ok {
			s.SD = sd
		}
		all = append(all, Value{Row: row.Name, Value: s.Mean, Spread: s.SD})
	}
	return all
}

// inSpace takes the measures in the features of one network.
func (j *Judge) inSpace(ctx context.Context, t *table, s *space, name string, m quality.Matrix) error {
	suffix := s.suffix
	if j.asked(Frechet) {
		if least := LeastFrechetOf(j.c.Size); m.N < least {
			t.note("%s: %s, and a Fréchet distance wants at least %d", name, j.samples(m.N), least)
		} else if err := j.frechet(t, s, m, suffix); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if j.asked(KID) {
		k := quality.KID{Subsets: quality.Subsets, Size: min(quality.SubsetSize, m.N, s.reference.N), Seed: j.c.Seed, Threads: j.c.Threads, Mul: j.mul.Products(ctx)}
		v, err := k.Of(s.reference, m)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add("kid"+suffix, 1000*v)
	}
	if !j.asked(PRDC) {
		return nil
	}
	for _, side := range []struct {
		of string
		n  int
	}{{name, m.N}, {"the reference", s.reference.N}} {
		if side.n < quality.LeastPRDC {
			t.note("%s: %s, and precision and recall want at least %d", side.of, j.samples(side.n), quality.LeastPRDC)
			return nil
		}
	}
	return j.prdc(ctx, t, s, name, m)
}

// prdc are precision and recall, density and coverage, of as many pictures as both sides
// have.
func (j *Judge) prdc(ctx context.Context, t *table, s *space, name string, m quality.Matrix) error {
	n := min(m.N, s.reference.N)
	if s.manifold[n] == nil {
		manifold, err := quality.NewManifold(s.reference.Rows(0, n), j.mul.Products(ctx))
		if err != nil {
			return err
		}
		s.manifold[n] = manifold
	}
	p, err := s.manifold[n].Judge(m.Rows(0, n))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t.add("precision"+s.suffix, p.Precision)
	t.add("recall"+s.suffix, p.Recall)
	t.add("density"+s.suffix, p.Density)
	t.add("coverage"+s.suffix, p.Coverage)
	return nil
}

func (j *Judge) frechet(t *table, s *space, m quality.Matrix, suffix string) error {
	g, err := quality.FitGaussian(m)
	if err != nil {
		return err
	}
	v, err := quality.Frechet(s.gaussian, g)
	if err == nil {
		t.add("frechet"+suffix, v)
	}
	return err
}

func (t *table) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(t.notes, text) {
		t.notes = append(t.notes, text)
	}
}

// patches are those of each of n pictures.
func patches(n int) int { return max(1, min(patchesOfEach, mostPatches/n)) }

// sliced is the sliced Wasserstein distance, the mean over levels, of as many pictures as
// both sides have. It takes mostPatches patches of them all, where 128 of each of 16,384
// pictures and more are published: 6 of each of 5,000. The fewer, the further from 0 are
// equal sets, so it is to be read beside a floor of as many pictures (Counts), and beside no
// published number (DESIGN.md has how much that makes).
func (j *Judge) sliced(ctx context.Context, t *table, set Set) error {
	if !j.asked(SWD) {
		return nil
	}
	j.c.Tell(set.Name + ": patches")
	n := min(j.count(set), j.count(j.reference))
	s := quality.SWD{Patches: patches(n), Directions: directions, Seed: j.c.Seed, Threads: j.c.Threads, Mul: j.mul.Products(ctx)}
	project := func(x []float32) (quality.Projected, error) {
		if j.c.Size.Vector() {
			return s.ProjectRows(j.matrix(x, n))
		}
		return s.Project(quality.Pictures{N: n, C: j.c.Size.C, H: j.c.Size.H, W: j.c.Size.W, X: x[:n*j.c.Size.Len()]})
	}
	if _, ok := j.swd[n]; !ok {
		p, err := project(j.reference.X)
		if err != nil {
			return err
		}
		j.swd[n] = p
	}
	p, err := project(set.X)
	if err != nil {
		return err
	}
	levels, err := p.Distance(j.swd[n])
	if err != nil {
		return err
	}
	mean := 0.0
	for _, v := range levels {
		mean += v / float64(len(levels))
	}
	t.add("swd", mean)
	return nil
}

// nearest is the median distance to the nearest picture of the reference.
func (j *Judge) nearest(ctx context.Context, t *table, set Set) error {
	if !j.asked(Neighbours) {
		return nil
	}
	j.c.Tell(set.Name + ": nearest training " + j.noun())
	n := min(mostNeighbours, j.count(set))
	d, err := quality.Nearest(j.matrix(set.X, n), j.pixels, j.mul.Products(ctx))
	if err != nil {
		return err
	}
	t.add("neighbour", eval.Median(d))
	return nil
}

// Steps of the two-sample classifier: a few passes over half of the pictures.
const (
	toldBatch  = 100
	toldPasses = 8
	mostTold   = 2000 // pictures of each side
	pointSteps = 500  // of points at least: they are quick, and few of them are few steps
)

// told trains a classifier to tell the set from the reference, on the even pictures
// of both, and asks it of the odd ones.
func (j *Judge) told(ctx context.Context, t *table, set Set) (err error) {
	if !j.asked(C2ST) {
		return nil
	}
	n := min(mostTold, j.count(set), j.count(j.reference))
	halves := [2]feature.Labelled{{Size: j.c.Size}, {Size: j.c.Size}}
	size := j.c.Size.Len()
	for i := range n {
		h := &halves[i%2]
		h.X = append(append(h.X, j.reference.X[i*size:(i+1)*size]...), set.X[i*size:(i+1)*size]...)
		h.Labels = append(h.Labels, 0, 1)
	}
	batch := min(toldBatch, len(halves[0].Labels))
	steps := toldPasses * len(halves[0].Labels) / batch
	if size := j.c.Size; size.Vector() {
		steps = max(steps, pointSteps)
	}
	j.c.Tell(set.Name + ": two-sample classifier")
	net, err := feature.Train(ctx, j.c.Backend, halves[0], feature.Training{Classes: 2, Steps: steps, Batch: batch, Seed: j.c.Seed})
	if err != nil {
		return fmt.Errorf("%s: two-sample classifier: %w", set.Name, err)
	}
	e, err := feature.NewProbabilities(j.c.Backend, net, batch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	p, err := e.Of(ctx, nil, halves[1].X)
	if err != nil {
		return err
	}
	var scores [2][]float64
	for i, l := range halves[1].Labels {
		scores[l] = append(scores[l], p.Row(i)[1])
	}
	auc, err := eval.AUROC(scores[1], scores[0])
	t.add("c2st-accuracy", feature.Accuracy(p, halves[1].Labels))
	t.add("c2st-auc", auc)
	return err
}
