package colltest

import (
	"slices"
	"testing"
	"time"

	"ebtrain/collective"
)

// rounding bounds the error of sums and means of numbers that are not exact.
func (f Factory) rounding(t *testing.T) {
	for _, n := range f.quickSizes() {
		comms := f.group(t, n)
		in := reals(n)
		for _, d := range []collective.DType{collective.F32, collective.F64, collective.BF16} {
			for _, op := range []collective.Op{collective.Sum, collective.Mean} {
				each(comms, func(c collective.Comm) error { return f.round(c, d, op, in) }).ok(t)
				if t.Failed() {
					t.Fatalf("%s of %s on %d ranks", op, d, n)
				}
			}
		}
	}
}

// reals are the vectors of n ranks, of numbers that are not exact.
func reals(n int) [][]float64 {
	const length = 5000
	in := make([][]float64, n)
	for r := range in {
		in[r] = make([]float64, length)
		for i := range in[r] {
			in[r][i] = real(n, r, i)
		}
	}
	return in
}

func (f Factory) round(c collective.Comm, d collective.DType, op collective.Op, in [][]float64) error {
	cut := make([][]float64, len(in)) // as d holds them
	var buf [8]byte
	for r := range in {
		cut[r] = make([]float64, len(in[r]))
		for i, x := range in[r] {
			put(d, buf[:], x)
			cut[r][i] = get(d, buf[:])
		}
	}
	b, err := f.Memory(c, vectorBytes(d, len(in[0])))
	if err != nil {
		return err
	}
	v := newVector(b, d, cut[c.Rank()])
	req := collective.Request{Kind: collective.AllReduce, Op: op, Vec: v.vec}
	if err := do(c, req); err != nil {
		return err
	}
	got, err := v.values()
	if err != nil {
		return err
	}
	return compare(got, expected(req, cut)[c.Rank()], func(i int) float64 {
		var sum float64 // n roundings, each of at most half a unit of a partial sum
		for r := range cut {
			sum += abs(cut[r][i])
		}
		if op == collective.Mean {
			sum /= float64(len(cut))
		}
		return float64(len(cut)) / 2 * d.Epsilon() * sum
	})
}

// determinism demands equal bits on all ranks and in every repetition.
func (f Factory) determinism(t *testing.T) {
	const length = 20011
	for _, n := range f.sizes() {
		comms := f.group(t, n)
		shelves := f.shelves(t, comms, vectorBytes(collective.F32, length))
		for _, length := range []int{1, 700, length} {
			var first []byte
			for repeat, p := range []place{ordinary, allocated, mixed, ordinary, allocated} {
				bits := make([][]byte, n)
				each(comms, func(c collective.Comm) (err error) {
					r := c.Rank()
					values := make([]float64, length)
					for i := range values {
						values[i] = real(1, r, i)
					}
					v := newVector(shelves[r].at(p, r), collective.F32, values)
					time.Sleep(time.Duration((r+repeat)%3) * time.Millisecond) // arrive in another order
					if err := do(c, collective.Request{Kind: collective.AllReduce, Op: collective.Mean, Vec: v.vec}); err != nil {
						return err
					}
					bits[r], err = v.bytes()
					return err
				}).ok(t)
				if first == nil {
					first = bits[0]
				}
				for r := range bits {
					if !slices.Equal(bits[r], first) {
						t.Fatalf("ranks=%d length=%d: rank %d with %s memory has other bits than rank 0 had first", n, length, r, p)
					}
				}
			}
		}
	}
}
