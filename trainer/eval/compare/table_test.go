package compare

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/eval/quality"
)

// ofOneKind are n blobs of one kind: near the reference's, and not all of them.
func ofOneKind(n int) (x []float32) {
	all := blobs(2*n, 10_000)
	for i, kind := range all.Labels {
		if kind == 0 {
			x = append(x, all.X[i*size.Len():(i+1)*size.Len()]...)
		}
	}
	return x
}

// in are the features of pictures by a network, in units of those of reference: their
// mean and standard deviation there are 0 and 1.
func in(t *testing.T, b exec.Backend, net feature.Net, reference, x []float32) (of, beside quality.Matrix) {
	t.Helper()
	e, err := feature.NewExtractor(b, net, 7)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // a failure is that of the judge's too
	both, err := e.Of(t.Context(), nil, slices.Concat(reference, x))
	if err != nil {
		t.Fatal(err)
	}
	n := len(reference) / size.Len()
	for k := range both.D {
		mean, square := 0.0, 0.0
		for i := range n {
			mean += both.Row(i)[k] / float64(n)
		}
		for i := range n {
			square += (both.Row(i)[k] - mean) * (both.Row(i)[k] - mean) / float64(n)
		}
		for i := range both.N {
			both.Row(i)[k] = (both.Row(i)[k] - mean) / math.Sqrt(square)
		}
	}
	return both.Rows(0, n), both.Rows(n, both.N)
}

// told are accuracy and AUC of a classifier that has learnt to tell pictures with even
// numbers, for those with odd ones: AUC is the share of pairs that are in order.
func told(t *testing.T, b exec.Backend, reference, x []float32) (accuracy, auc float64) {
	t.Helper()
	n, of := len(x)/size.Len(), size.Len()
	learnt := feature.Labelled{Size: size}
	var real, drawn []float32
	for i := range n {
		a, b := reference[i*of:(i+1)*of], x[i*of:(i+1)*of]
		if i%2 == 1 {
			real, drawn = append(real, a...), append(drawn, b...)
			continue
		}
		learnt.X, learnt.Labels = slices.Concat(learnt.X, a, b), append(learnt.Labels, 0, 1)
	}
	net, err := feature.Train(t.Context(), b, learnt, feature.Training{Classes: 2, Steps: 8 * len(learnt.Labels) / 100, Batch: 100, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := feature.NewProbabilities(b, net, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // a failure is that of the judge's too
	of0, err := e.Of(t.Context(), nil, real)
	if err != nil {
		t.Fatal(err)
	}
	of1, err := e.Of(t.Context(), nil, drawn)
	if err != nil {
		t.Fatal(err)
	}
	m := float64(of0.N)
	for i := range of0.N {
		for _, right := range []bool{of0.Row(i)[0] > 0.5, of1.Row(i)[1] > 0.5} {
			if right {
				accuracy += 1 / (2 * m)
			}
		}
		for k := range of1.N {
			if of1.Row(k)[1] > of0.Row(i)[1] {
				auc += 1 / (m * m)
			}
		}
	}
	return accuracy, auc
}

// neighbour is the median over an odd number of pictures of the root of the mean square
// to the nearest of the reference.
func neighbour(reference, x []float32) float64 {
	var all []float64
	for one := range slices.Chunk(x, size.Len()) {
		least := math.Inf(1)
		for other := range slices.Chunk(reference, size.Len()) {
			square := 0.0
			for i, v := range one {
				square += float64(v-other[i]) * float64(v-other[i]) / float64(size.Len())
			}
			least = min(least, math.Sqrt(square))
		}
		all = append(all, least)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// numbers are those of a judge's table by their rows.
func numbers(t *testing.T, j *Judge, x []float32) map[string]float64 {
	t.Helper()
	values, notes, err := j.Of(t.Context(), Set{Name: "set", X: x})
	if err != nil || len(notes) > 0 {
		t.Fatal(notes, err)
	}
	out := map[string]float64{}
	for _, v := range values {
		out[v.Row] = v.Value
	}
	return out
}

// Features are in units of the reference, and one that is the same in all of it is only
// shifted.
func TestStandard(t *testing.T) {
	s := &space{}
	s.standardise(quality.Matrix{N: 2, D: 2, X: []float64{1, 5, 3, 5}})
	other := s.standard(quality.Matrix{N: 1, D: 2, X: []float64{4, 7}})
	if !slices.Equal(s.reference.X, []float64{-1, 0, 1, 0}) || !slices.Equal(other.X, []float64{2, 2}) {
		t.Errorf("the reference has %v, another picture %v", s.reference.X, other.X)
	}
}

// Each row has the number that it is named for: those in features by package quality, of
// standardised features, the mean of the random networks' and the classifier's.
func TestTable(t *testing.T) {
	const n, networks = 105, 2 // more than a hundred, and odd
	reference, x := blobs(120, 0), ofOneKind(n)
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close() //nolint:errcheck // a failure is that of the judge's too
	net, err := feature.Train(t.Context(), backend, reference, feature.Training{Classes: 2, Steps: 3, Batch: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	j := judge(t, Config{Measures: []string{KID, PRDC, C2ST, Neighbours}, Classifier: &net}, Set{Name: "reference", X: reference.X})
	for _, s := range j.spaces[networks:feature.Ensemble] { // two tell a mean from each
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	j.spaces = slices.Delete(j.spaces, networks, feature.Ensemble)
	want := map[string]float64{"neighbour": neighbour(reference.X, x)}
	want["c2st-accuracy"], want["c2st-auc"] = told(t, backend, reference.X, x)
	for i, net := range []feature.Net{feature.Random(1, size), feature.Random(2, size), net} {
		suffix, share := "", 1./networks
		if i == networks {
			suffix, share = "-classifier", 1
		}
		real, of := in(t, backend, net, reference.X, x)
		kid, err := quality.KID{Subsets: 50, Size: n, Seed: 1, Mul: quality.Plain}.Of(real, of)
		if err != nil {
			t.Fatal(err)
		}
		manifold, err := quality.NewManifold(real.Rows(0, n), quality.Plain)
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifold.Judge(of)
		if err != nil {
			t.Fatal(err)
		}
		for row, v := range map[string]float64{"kid": 1000 * kid, "precision": p.Precision, "recall": p.Recall, "density": p.Density, "coverage": p.Coverage} {
			want[row+suffix] += share * v
		}
	}
	got := numbers(t, j, x)
	for row, w := range want {
		if g, ok := got[row]; !ok || !(math.Abs(g-w) <= 1e-3*(0.01+math.Abs(w))) {
			t.Errorf("%s is %v, want %v", row, g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, want %d: %v", len(got), len(want), got)
	}
}

// The more pictures, the fewer patches of each.
func TestPatches(t *testing.T) {
	for n, want := range map[int]int{1: 128, 256: 128, 257: 127, 5000: 6, 1 << 20: 1} {
		if got := patches(n); got != want {
			t.Errorf("%d patches of each of %d pictures, want %d", got, n, want)
		}
	}
}

// The sliced Wasserstein distance is the mean over levels, here two of which the finer
// is farther, of as many pictures as both sides have.
func TestSlicedIsOfAllLevels(t *testing.T) {
	const n = 5
	large := feature.Size{C: 1, H: 32, W: 32}
	reference, x := control.Noise(n+2, large, 1), control.Blurred(control.Noise(n, large, 2), large)
	of := func(x []float32) quality.Projected {
		p, err := quality.SWD{Patches: 128, Directions: 512, Seed: 1, Mul: quality.Plain}.Project(quality.Pictures{N: n, C: 1, H: 32, W: 32, X: x[:n*large.Len()]})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	levels, err := of(x).Distance(of(reference))
	if err != nil || len(levels) != 2 {
		t.Fatal(levels, err)
	}
	j := judge(t, Config{Size: large, Measures: []string{SWD}}, Set{Name: "reference", X: reference})
	if got, want := numbers(t, j, x)["swd"], (levels[0]+levels[1])/2; !(math.Abs(got/want-1) <= 1e-3) {
		t.Errorf("got %v, want %v, of the levels %v", got, want, levels)
	}
}

// A two-sample classifier says 0.5 of equal sets, and what it says of real ones scatters about
// that: copies are never worse than these, and what is told the other way round is as far off.
func TestBeats(t *testing.T) {
	for _, c := range []struct {
		better Better
		a, b   float64
		want   bool
	}{
		{Lower, 1, 2, true}, {Lower, 2, 2, false}, {Higher, 2, 1, true}, {Higher, 2, 2, false},
		{Half, 0.5, 0.48, true}, {Half, 0.48, 0.5, false}, {Half, 0.48, 0.8, true}, {Half, 0.3, 0.6, false}, {Half, 1, 1, false},
	} {
		if got := c.better.Beats(c.a, c.b); got != c.want {
			t.Errorf("%s: %v beats %v: %v", c.better, c.a, c.b, got)
		}
	}
	for _, r := range Rows() {
		if got := r.Better == Half; got != (r.Measure == C2ST) {
			t.Errorf("%s is better %s", r.Name, r.Better)
		}
	}
}

// What is the same in all of the reference but for rounding is measured as it is: in units of its
// rounding a difference of one part in a million would outweigh all other features.
func TestStandardUnitsOfRounding(t *testing.T) {
	const n = 7
	reference := quality.NewMatrix(n, 3)
	for i := range n {
		copy(reference.Row(i), []float64{0.1, 5 + float64(float32(1e-7))*float64(i%2), float64(i)})
	}
	var s space
	s.standardise(reference)
	got := s.standard(quality.Matrix{N: 1, D: 3, X: []float64{0.1 + 1e-6, 5 + 1e-6, 9}}).Row(0)
	for k, most := range []float64{1e-5, 1e-5, 4} {
		if !(got[k] >= 0 && got[k] <= most) {
			t.Errorf("feature %d lies at %v, want at most %v", k, got[k], most)
		}
	}
	if got[2] < 1 {
		t.Errorf("a feature with a spread lies at %v", got[2])
	}
}
