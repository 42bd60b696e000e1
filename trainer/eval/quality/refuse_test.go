package quality

import (
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// What says nothing of too few samples, or of features of two kinds, is refused; of one more
// it is not.
func TestRefused(t *testing.T) {
	rng := seeded(23)
	rows := func(n int) Matrix { return normal(rng, n, 3) }
	manifold := func(real, fake int) error {
		m, err := NewManifold(rows(real), Plain)
		if err != nil {
			return err
		}
		return second(m.Judge(rows(fake)))
	}
	kid := func(subsets, size, x, y int) error {
		return second(KID{Subsets: subsets, Size: size, Mul: Plain}.Of(rows(x), rows(y)))
	}
	score := func(n, parts int) error {
		m := NewMatrix(n, 2)
		for i := range n {
			m.Row(i)[i%2] = 1
		}
		_, _, err := InceptionScore(m, parts)
		return err
	}
	gaussian := func(d int) Gaussian { return Gaussian{Mean: make([]float64, d), Cov: mat.NewSymDense(d, nil)} }
	sliced := func(patches, directions, n, h, w int) error {
		return second(SWD{Patches: patches, Directions: directions, Mul: Plain}.Project(drawn(rng, n, 1, h, w)))
	}
	lines := func(directions, n, d int) error {
		return second(SWD{Directions: directions, Mul: Plain}.ProjectRows(normal(rng, n, d)))
	}
	levels := func(n int) Projected { return Projected{sorted: make([][][]float64, n)} }
	for name, c := range map[string]struct {
		want string // empty where nothing is wrong
		err  error
	}{
		"a Gaussian of 1":        {"a covariance of 1 samples, want at least 2", second(FitGaussian(rows(1)))},
		"a Gaussian of 2":        {"", second(FitGaussian(rows(2)))},
		"Gaussians of two kinds": {"a Fréchet distance of 2 features and 3", second(Frechet(gaussian(2), gaussian(3)))},
		"data of 5":              {"precision and recall of 5 samples, want at least 6", manifold(5, 6)},
		"samples of 5":           {"precision and recall of 5 samples, want at least 6", manifold(6, 5)},
		"6 and 6":                {"", manifold(6, 6)},
		"nearest of none":        {"nearest neighbours of 0 samples, want at least 1", second(Nearest(rows(0), rows(1), Plain))},
		"nearest in none":        {"nearest neighbours of 0 samples, want at least 1", second(Nearest(rows(1), rows(0), Plain))},
		"nearest of 1 in 1":      {"", second(Nearest(rows(1), rows(1), Plain))},
		"KID of 1":               {"a kernel distance of 1 samples, want at least 2", kid(1, 2, 1, 2)},
		"KID of 2":               {"", kid(1, 2, 2, 2)},
		"KID over no subset":     {"over 0 subsets of 2, of 3 and 4 samples", kid(0, 2, 3, 4)},
		"KID over subsets of 1":  {"over 1 subsets of 1, of 3 and 4 samples", kid(1, 1, 3, 4)},
		"parts of less than 2":   {"an inception score of 5 samples, want at least 6", score(5, 3)},
		"parts of 2":             {"", score(6, 3)},
		"one patch":              {"", sliced(1, 1, 1, 7, 7)},
		"low pictures":           {"of 1 pictures 1×6×9, want sides of at least 7", sliced(1, 1, 1, 6, 9)},
		"narrow pictures":        {"of 1 pictures 1×9×6, want sides of at least 7", sliced(1, 1, 1, 9, 6)},
		"no pictures":            {"of 0 pictures 1×7×7", sliced(1, 1, 0, 7, 7)},
		"no patches":             {"a sliced Wasserstein distance", sliced(0, 1, 1, 7, 7)},
		"no directions":          {"a sliced Wasserstein distance", sliced(1, 0, 1, 7, 7)},
		"one number":             {"", lines(1, 1, 1)},
		"no rows":                {"of 0 rows of 1 values on 1 directions", lines(1, 0, 1)},
		"rows of nothing":        {"of 1 rows of 0 values on 1 directions", lines(1, 1, 0)},
		"rows and no directions": {"of 1 rows of 1 values on 0 directions", lines(0, 1, 1)},
		"levels of two kinds":    {"of 2 levels and 1", second(levels(2).Distance(levels(1)))},
	} {
		if c.want == "" && c.err != nil || c.want != "" && (c.err == nil || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: got error %v, want %q", name, c.err, c.want)
		}
	}
}
