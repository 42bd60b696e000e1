package eval

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// AUROC is the area under the ROC curve of scores that should be high for
// positive and low for negative examples: the probability that a random
// positive scores above a random negative, ties counting one half. It is exact
// up to one rounding. For energies the score is −E(v): data (positive) should
// have low energy. NaN scores and empty sides are errors; infinities are fine.
func AUROC(positive, negative []float64) (float64, error) {
	if len(positive) == 0 || len(negative) == 0 {
		return 0, fmt.Errorf("eval: AUROC of %d positive and %d negative scores, expected some of both", len(positive), len(negative))
	}
	all, err := pool(positive, negative)
	if err != nil {
		return 0, err
	}
	var below, twice int64 // negatives below the tie; twice the pairs won
	for len(all) > 0 {
		pos, neg := int64(0), int64(0)
		n := 0
		for ; n < len(all) && all[n].v == all[0].v; n++ {
			if all[n].positive {
				pos++
			} else {
				neg++
			}
		}
		twice += pos * (2*below + neg)
		below += neg
		all = all[n:]
	}
	return float64(twice) / (2 * float64(len(positive)) * float64(len(negative))), nil
}

type score struct {
	v        float64
	positive bool
}

// pool is all scores, sorted.
func pool(positive, negative []float64) ([]score, error) {
	all := make([]score, 0, len(positive)+len(negative))
	for k, side := range [][]float64{positive, negative} {
		for i, v := range side {
			if math.IsNaN(v) {
				return nil, NotFinite("eval: AUROC: %s score %d is NaN", [...]string{"positive", "negative"}[k], i)
			}
			all = append(all, score{v, k == 0})
		}
	}
	slices.SortFunc(all, func(a, b score) int { return cmp.Compare(a.v, b.v) })
	return all, nil
}
