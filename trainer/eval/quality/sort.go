package quality

import (
	"math"
	"slices"
)

const (
	fewToSort = 64 // that slices.Sort sorts in as little time
	crowd     = 32 // values that sorting by insertion takes too long for
)

// sorter is the scratch of sorting.
type sorter struct {
	values []float64
	ends   []int32 // of buckets
}

// sort is slices.Sort, in less than a tenth of the time where values are spread about as those of
// a normal distribution: they are put in buckets of equal width, two for each value,
// after which each is near its place.
func (s *sorter) sort(values []float64) {
	if len(values) < fewToSort {
		slices.Sort(values)
		return
	}
	low, scale := spread(values)
	if !(scale > 0 && scale <= math.MaxFloat64) {
		slices.Sort(values)
		return
	}
	s.bucket(values, low, scale)
	from := int32(0)
	for _, to := range s.ends {
		if to-from > crowd {
			slices.Sort(values[from:to])
		}
		from = to
	}
	insertionSort(values)
}

// spread are the lowest value and how many buckets there are to a unit: NaN, infinite or
// 0 where values are not finite, all equal, or too near or too far from each other.
func spread(values []float64) (low, scale float64) {
	low, high := values[0], values[0]
	for _, v := range values {
		if v < low {
			low = v
		}
		if v > high {
			high = v
		}
		if v != v {
			return 0, v
		}
	}
	return low, float64(2*len(values)) / (high - low)
}

// bucket orders values by the bucket ⌊(v−low)·scale⌋, the last of which is that of the
// highest value.
func (s *sorter) bucket(values []float64, low, scale float64) {
	s.values = append(s.values[:0], values...)
	buckets := 2*len(values) + 1
	s.ends = slices.Grow(s.ends[:0], buckets)[:buckets]
	ends := s.ends
	clear(ends)
	for _, v := range values {
		ends[int((v-low)*scale)]++
	}
	at := int32(0)
	for b, n := range ends {
		ends[b] = at // the start, which moves to the end as values come
		at += n
	}
	for _, v := range s.values {
		b := int((v - low) * scale)
		values[ends[b]] = v
		ends[b]++
	}
}

// insertionSort sorts values that are near their places.
func insertionSort(values []float64) {
	for i, v := range values {
		for ; i > 0 && values[i-1] > v; i-- {
			values[i] = values[i-1]
		}
		values[i] = v
	}
}
