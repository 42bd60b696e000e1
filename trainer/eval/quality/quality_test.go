package quality

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func normal(rng *rand.Rand, n, d int) Matrix {
	m := NewMatrix(n, d)
	for i := range m.X {
		m.X[i] = rng.NormFloat64()
	}
	return m
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// The root of C₁C₂ by the iteration of Denman and Beavers, which knows nothing of
// eigenvalues.
func slowFrechet(t *testing.T, a, b Gaussian) float64 {
	t.Helper()
	d := len(a.Mean)
	var y mat.Dense
	y.Mul(a.Cov, b.Cov)
	z := mat.NewDense(d, d, nil)
	for i := range d {
		z.Set(i, i, 1)
	}
	for range 60 {
		var yi, zi, yn, zn mat.Dense
		if yi.Inverse(&y) != nil || zi.Inverse(z) != nil {
			t.Fatal("no inverse")
		}
		yn.Add(&y, &zi)
		yn.Scale(0.5, &yn)
		zn.Add(z, &yi)
		zn.Scale(0.5, &zn)
		y.Copy(&yn)
		z.Copy(&zn)
	}
	sum := mat.Trace(a.Cov) + mat.Trace(b.Cov) - 2*mat.Trace(&y)
	for i := range d {
		sum += (a.Mean[i] - b.Mean[i]) * (a.Mean[i] - b.Mean[i])
	}
	return sum
}

func TestFrechetOfKnownGaussians(t *testing.T) {
	diagonal := func(mean float64, variances ...float64) Gaussian {
		g := Gaussian{Mean: make([]float64, len(variances)), Cov: mat.NewSymDense(len(variances), nil)}
		for i, v := range variances {
			g.Mean[i] = mean
			g.Cov.SetSym(i, i, v)
		}
		return g
	}
	for name, c := range map[string]struct {
		a, b Gaussian
		want float64
	}{
		"equal":    {diagonal(3, 1, 2, 3), diagonal(3, 1, 2, 3), 0},
		"shifted":  {diagonal(0, 1, 2, 3), diagonal(2, 1, 2, 3), 12},
		"wider":    {diagonal(0, 1, 4), diagonal(0, 9, 4), 4}, // (3−1)²
		"singular": {diagonal(0, 0, 4), diagonal(0, 1, 0), 5},
	} {
		if got, err := Frechet(c.a, c.b); err != nil || !(math.Abs(got-c.want) <= 1e-6) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	rng := seeded(1)
	for d := 2; d < 12; d += 3 {
		mix := normal(rng, d, d)
		x, y := normal(rng, 60, d), normal(rng, 90, d)
		bent := NewMatrix(y.N, d)
		if err := Plain(y, mix, bent.X); err != nil {
			t.Fatal(err)
		}
		a, errA := FitGaussian(x)
		b, errB := FitGaussian(bent)
		got, err := Frechet(a, b)
		if want := slowFrechet(t, a, b); errA != nil || errB != nil || err != nil || !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("%d features: %v, %v; want %v", d, got, err, want)
		}
		back, err := Frechet(b, a)
		if err != nil || !(math.Abs(back-got) <= 1e-6) {
			t.Errorf("%d features: %v one way, %v the other, %v", d, got, back, err)
		}
	}
}

func TestFitGaussian(t *testing.T) {
	m := normal(seeded(2), 40, 3)
	g, err := FitGaussian(m)
	if err != nil {
		t.Fatal(err)
	}
	for j := range 3 {
		for k := range 3 {
			sum, meanJ, meanK := 0.0, 0.0, 0.0
			for i := range m.N {
				meanJ += m.Row(i)[j] / 40
				meanK += m.Row(i)[k] / 40
			}
			for i := range m.N {
				sum += (m.Row(i)[j] - meanJ) * (m.Row(i)[k] - meanK) / 39
			}
			if !(math.Abs(sum-g.Cov.At(j, k)) <= 1e-12) || !(math.Abs(meanJ-g.Mean[j]) <= 1e-12) {
				t.Errorf("covariance %d,%d is %v, want %v", j, k, g.Cov.At(j, k), sum)
			}
		}
	}
	for want, v := range map[string]float64{"feature 1 of sample 2 is NaN": math.NaN(), "feature 1 of sample 2 is +Inf": math.Inf(1)} {
		m.X[7] = v
		if _, err := FitGaussian(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want that %s", err, want)
		}
	}
}

// A covariance of fewer samples than features has eigenvalues of 0, some of which rounding
// makes negative: the distance of it from itself is 0, and no NaN.
func TestFrechetOfFewSamples(t *testing.T) {
	g, err := FitGaussian(normal(seeded(21), 5, 30))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := Frechet(g, g); err != nil || !(math.Abs(d) < 1e-5) {
		t.Errorf("%v, %v; want 0", d, err)
	}
}

// Of all pairs, by two loops.
func slowKID(x, y Matrix) float64 {
	kernel := func(a, b []float64) float64 {
		dot := 0.0
		for i := range a {
			dot += a[i] * b[i]
		}
		return math.Pow(dot/float64(len(a))+1, 3)
	}
	var xx, yy, xy float64
	for i := range x.N {
		for j := range y.N {
			if i != j {
				xx += kernel(x.Row(i), x.Row(j))
				yy += kernel(y.Row(i), y.Row(j))
			}
			xy += kernel(x.Row(i), y.Row(j))
		}
	}
	n := float64(x.N)
	return (xx+yy)/(n*(n-1)) - 2*xy/(n*n)
}

func TestKID(t *testing.T) {
	rng := seeded(3)
	x, y := normal(rng, 30, 4), normal(rng, 30, 4)
	for i := range y.X {
		y.X[i] += 0.5
	}
	got, err := KID{Subsets: 3, Size: 30, Mul: Plain}.Of(x, y) // each subset is all
	if want := slowKID(x, y); err != nil || !(math.Abs(got-want) <= 1e-12) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	// Each round has subsets of its own, of either side.
	k, mean, seen := KID{Subsets: 3, Size: 5, Seed: 1, Mul: Plain}, 0.0, map[string]bool{}
	for s := range k.Subsets {
		a, b := k.subset(30, s, 0), k.subset(30, s, 1)
		seen[fmt.Sprint(a)], seen[fmt.Sprint(b)] = true, true
		mean += slowKID(x.Pick(a), y.Pick(b)) / float64(k.Subsets)
	}
	if got, err := k.Of(x, y); err != nil || !(math.Abs(got-mean) <= 1e-12) || len(seen) != 2*k.Subsets {
		t.Errorf("got %v of %d subsets, %v; want %v of %d", got, len(seen), err, mean, 2*k.Subsets)
	}
	k.Seed = 2
	if got, err := k.Of(x, y); err != nil || got == mean || math.Abs(got-mean) < 1e-9 {
		t.Errorf("subsets of another seed give the same %v, %v", got, err)
	}
	more, bad := normal(rng, 31, 4), normal(rng, 30, 4)
	bad.X[5] = math.NaN()
	for name, err := range map[string]error{
		"larger than the data": second(KID{Subsets: 3, Size: 31, Mul: Plain}.Of(x, more)), "larger than the samples": second(KID{Subsets: 3, Size: 31, Mul: Plain}.Of(more, x)),
		"NaN among the data": second(KID{Subsets: 3, Size: 5, Mul: Plain}.Of(bad, x)), "NaN among the samples": second(KID{Subsets: 3, Size: 5, Mul: Plain}.Of(x, bad)),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := (KID{Subsets: 3, Size: 5, Mul: Plain}).Of(x, normal(rng, 30, 5)); err == nil {
		t.Error("features of two kinds")
	}
}

func second[T any](_ T, err error) error { return err }

// Its mean over 200 draws of two equal distributions is 0; that of the biased one,
// which counts a sample with itself, is not.
func TestKIDIsUnbiased(t *testing.T) {
	rng := seeded(4)
	const draws, n, d = 200, 40, 5
	var sum, squares, selves float64
	for range draws {
		x, y := normal(rng, n, d), normal(rng, n, d)
		v, err := KID{Subsets: 2, Size: 30, Mul: Plain}.Of(x, y)
		if err != nil {
			t.Fatal(err)
		}
		sum += v
		squares += v * v
		for i := range n {
			dot := 0.0
			for _, a := range x.Row(i) {
				dot += a * a
			}
			selves += math.Pow(dot/d+1, 3) / n / n // what the bias would be, or more
		}
	}
	mean := sum / draws
	se := math.Sqrt((squares/draws - mean*mean) / draws)
	if !(math.Abs(mean) <= 2*se) {
		t.Errorf("mean %v, standard error %v", mean, se)
	}
	if selves/draws < 10*se {
		t.Errorf("the test would not see a bias of %v with standard error %v", selves/draws, se)
	}
}

func slowPRDC(real, fake Matrix) (p PRDC) {
	dist := func(a, b []float64) float64 {
		sum := 0.0
		for i := range a {
			sum += (a[i] - b[i]) * (a[i] - b[i])
		}
		return sum
	}
	radius := func(m Matrix, i, k int) float64 {
		var all []float64
		for j := range m.N {
			if j != i {
				all = append(all, dist(m.Row(i), m.Row(j)))
			}
		}
		slices.Sort(all)
		return all[k-1]
	}
	for i := range fake.N {
		in := 0.0
		for j := range real.N {
			if dist(fake.Row(i), real.Row(j)) <= radius(real, j, 3) {
				in = 1
			}
			if dist(fake.Row(i), real.Row(j)) <= radius(real, j, 5) {
				p.Density += 1 / 5.0 / float64(fake.N)
			}
		}
		p.Precision += in / float64(fake.N)
	}
	for j := range real.N {
		in, covered := 0.0, 0.0
		for i := range fake.N {
			if dist(fake.Row(i), real.Row(j)) <= radius(fake, i, 3) {
				in = 1
			}
			if dist(fake.Row(i), real.Row(j)) <= radius(real, j, 5) {
				covered = 1
			}
		}
		p.Recall += in / float64(real.N)
		p.Coverage += covered / float64(real.N)
	}
	return p
}

func TestPRDC(t *testing.T) {
	rng := seeded(5)
	real, fake := normal(rng, 60, 3), normal(rng, 45, 3)
	for i := range fake.X {
		fake.X[i] = 0.4*fake.X[i] + 1
	}
	m, err := NewManifold(real, Plain)
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Judge(fake)
	want := slowPRDC(real, fake)
	if err != nil || !(math.Abs(got.Precision-want.Precision)+math.Abs(got.Recall-want.Recall)+math.Abs(got.Density-want.Density)+math.Abs(got.Coverage-want.Coverage) <= 1e-9) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if want.Recall > 0.5 || want.Precision < 0.6 {
		t.Errorf("a narrow set has %+v", want)
	}
	same, err := m.Judge(real)
	if err != nil || same.Precision != 1 || same.Recall != 1 || same.Coverage != 1 || same.Density < 1 {
		t.Errorf("equal sets have %+v, %v", same, err)
	}
	far := NewMatrix(20, 3)
	for i := range far.X {
		far.X[i] = 100 + rng.Float64()
	}
	if none, err := m.Judge(far); err != nil || none != (PRDC{}) {
		t.Errorf("a set far away has %+v, %v", none, err)
	}
}

// rough are products as a device gives them, in float32.
func rough(x, y Matrix, out []float64) error {
	for i := range x.N {
		for j := range y.N {
			sum := float32(0)
			for k, v := range y.Row(j) {
				sum += float32(x.Row(i)[k]) * float32(v)
			}
			out[i*y.N+j] = float64(sum)
		}
	}
	return nil
}

// Equal distances are equal, whatever products say of them: of rows on a grid many
// are, and rows that are there often have a ball of radius 0, in which they are.
func TestPRDCOfTies(t *testing.T) {
	rng := seeded(9)
	grid := func(n, d int) Matrix {
		m := normal(rng, n, d)
		for i := range m.X {
			m.X[i] = math.Round(m.X[i]) + 7
		}
		return m
	}
	real := normal(rng, 80, 16)
	repeated := NewMatrix(40, 16) // four of the real ones, again and again
	for i := range repeated.N {
		copy(repeated.Row(i), real.Row(i%4))
	}
	for name, set := range map[string]struct{ real, fake Matrix }{
		"on a grid": {grid(80, 2), grid(60, 2)}, "repeated": {real, repeated}, "repeated data": {repeated, real},
		"one row": {repeated.Pick(make([]int, 30)), repeated}, "at random": {normal(rng, 80, 8), normal(rng, 60, 8)},
		"of no length": {NewMatrix(20, 16), NewMatrix(30, 16)},
	} {
		m, err := NewManifold(set.real, rough)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Judge(set.fake)
		want := slowPRDC(set.real, set.fake)
		if err != nil || !(math.Abs(got.Precision-want.Precision)+math.Abs(got.Recall-want.Recall)+math.Abs(got.Density-want.Density)+math.Abs(got.Coverage-want.Coverage) <= 1e-9) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, want)
		}
	}
	near, err := Nearest(repeated, real, rough)
	if err != nil || slices.Max(near) != 0 {
		t.Errorf("copies are %v away, %v", near, err)
	}
}

// More rows than a tile, and rows that are far from the origin.
func TestNearest(t *testing.T) {
	rng := seeded(6)
	train, samples := normal(rng, tile+37, 2), normal(rng, tile+5, 2)
	for i := range train.X {
		train.X[i] += 1000
	}
	for i := range samples.X {
		samples.X[i] += 1000
	}
	copy(samples.Row(3), train.Row(tile+1))
	got, err := Nearest(samples, train, Plain)
	if err != nil {
		t.Fatal(err)
	}
	for i := range samples.N {
		want := math.Inf(1)
		for j := range train.N {
			a, b := samples.Row(i), train.Row(j)
			want = min(want, math.Sqrt(((a[0]-b[0])*(a[0]-b[0])+(a[1]-b[1])*(a[1]-b[1]))/2))
		}
		if !(math.Abs(got[i]-want) <= 1e-6) {
			t.Fatalf("sample %d: %v, want %v", i, got[i], want)
		}
	}
	if got[3] != 0 {
		t.Errorf("a copy is %v away", got[3])
	}
}

// The nearest of two that are nearly as far is found, which products in float32 cannot tell
// apart.
func TestNearestOfNearTies(t *testing.T) {
	const n, d = 60, 16
	rng := seeded(22)
	samples, train := normal(rng, n, d), NewMatrix(2*n, d)
	for i := range samples.N {
		for k := range 2 {
			row := train.Row(2*i + k)
			for j, v := range samples.Row(i) {
				row[j] = v
			}
			row[(i+k)%d] += 0.5 + 1e-8*float64((i+k)%2)
		}
	}
	got, err := Nearest(samples, train, rough)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if want := 0.5 / math.Sqrt(d); !(math.Abs(v/want-1) <= 1e-10) {
			t.Errorf("sample %d: %v, want %v", i, v, want)
		}
	}
}

func TestInceptionScore(t *testing.T) {
	sure, unsure := NewMatrix(40, 4), NewMatrix(40, 4)
	for i := range 40 {
		sure.Row(i)[i%4] = 1
		copy(unsure.Row(i), []float64{0.1, 0.2, 0.3, 0.4})
	}
	if m, sd, err := InceptionScore(sure, 10); err != nil || !(math.Abs(m-4) <= 1e-12) || sd > 1e-12 {
		t.Errorf("%v ± %v, %v; want as many as there are classes", m, sd, err)
	}
	if m, _, err := InceptionScore(unsure, 10); err != nil || !(math.Abs(m-1) <= 1e-12) {
		t.Errorf("%v, %v; want 1", m, err)
	}
	two := Matrix{4, 2, []float64{0.9, 0.1, 0.2, 0.8, 0.5, 0.5, 0.4, 0.6}}
	kl := func(p, q float64) float64 { return p*math.Log(p/q) + (1-p)*math.Log((1-p)/(1-q)) }
	want := math.Exp((kl(0.9, 0.5) + kl(0.2, 0.5) + kl(0.5, 0.5) + kl(0.4, 0.5)) / 4)
	if m, _, err := InceptionScore(two, 1); err != nil || !(math.Abs(m-want) <= 1e-12) {
		t.Errorf("%v, %v; want %v", m, err, want)
	}
	// A part that tells two classes and one that tells none.
	parts := Matrix{4, 2, []float64{1, 0, 0, 1, 1, 0, 1, 0}}
	if m, sd, err := InceptionScore(parts, 2); err != nil || !(math.Abs(m-1.5) <= 1e-12) || !(math.Abs(sd-0.5) <= 1e-12) {
		t.Errorf("%v ± %v, %v; want 1.5 ± 0.5, of parts that have 2 and 1", m, sd, err)
	}
	parts.X[3], parts.X[2] = 1.1, -0.1
	if _, _, err := InceptionScore(parts, 2); err == nil || !strings.Contains(err.Error(), "probability -0.1") {
		t.Errorf("a negative probability: %v", err)
	}
}
