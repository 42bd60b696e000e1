package colltest

import (
	"bytes"
	"fmt"
	"testing"

	"ebtrain/collective"
)

var (
	dtypes = []collective.DType{collective.F32, collective.F64, collective.BF16, collective.I32, collective.I64, collective.U8}
	ops    = []collective.Op{collective.Sum, collective.Mean, collective.Max, collective.Min}
)

// place is where the ranks' vectors lie.
type place string

const (
	ordinary  place = "ordinary"
	allocated place = "allocated"
	mixed     place = "mixed" // even ranks allocated, odd ones ordinary
)

// shelf is one rank's memory: one buffer of each sort, used again and again.
type shelf struct{ ordinary, allocated Buffer }

func (f Factory) shelves(t *testing.T, comms []collective.Comm, bytes int) []shelf {
	t.Helper()
	shelves := make([]shelf, len(comms))
	each(comms, func(c collective.Comm) error {
		var err error
		shelves[c.Rank()], err = f.shelf(c, bytes)
		return err
	}).ok(t)
	if t.Failed() {
		t.FailNow()
	}
	return shelves
}

func (f Factory) shelf(c collective.Comm, bytes int) (s shelf, err error) {
	mem, err := c.Alloc(bytes)
	if err != nil {
		return s, err
	}
	s.allocated = f.Wrap(c, mem)
	s.ordinary, err = f.Memory(c, bytes)
	return s, err
}

func (s shelf) at(p place, rank int) Buffer {
	if p == allocated || p == mixed && rank%2 == 0 {
		return s.allocated
	}
	return s.ordinary
}

// requests are all well-formed collectives on n ranks, without vectors.
func requests(n int) []collective.Request {
	reqs := []collective.Request{{Kind: collective.Barrier}}
	for _, d := range dtypes {
		vec := collective.Vec{Type: d}
		for _, op := range ops {
			if op == collective.Mean && !d.IsFloat() {
				continue
			}
			reqs = append(reqs, collective.Request{Kind: collective.AllReduce, Op: op, Vec: vec},
				collective.Request{Kind: collective.ReduceScatter, Op: op, Vec: vec})
		}
		reqs = append(reqs, collective.Request{Kind: collective.AllGather, Vec: vec},
			collective.Request{Kind: collective.Broadcast, Root: int(d) % n, Vec: vec})
	}
	return reqs
}

// check runs req with len elements of whole numbers on all ranks and compares.
func check(comms []collective.Comm, shelves []shelf, p place, req collective.Request, length, seed int) results {
	if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
		length *= len(comms)
	}
	req.Vec.Len = length
	in := make([][]float64, len(comms))
	for r := range in {
		in[r] = make([]float64, length)
		for i := range in[r] {
			in[r][i] = whole(req.Vec.Type, seed, r, i)
		}
	}
	if req.Kind == collective.Barrier {
		return each(comms, func(c collective.Comm) error { return do(c, req) })
	}
	want := expected(req, in)
	return each(comms, func(c collective.Comm) error {
		r := c.Rank()
		v := newVector(shelves[r].at(p, r), req.Vec.Type, in[r])
		mine := req
		mine.Vec = v.vec
		if err := do(c, mine); err != nil {
			return err
		}
		got, err := v.values()
		if err != nil {
			return err
		}
		if req.Op == collective.Mean { // one rounding, of the quotient
			e := req.Vec.Type.Epsilon()
			return compare(got, want[r], func(i int) float64 { return e * abs(want[r][i]) })
		}
		return compare(got, want[r], nil)
	})
}

func abs(x float64) float64 { return max(x, -x) }

// values tests every collective, type and reduction at many lengths.
func (f Factory) values(t *testing.T) {
	for _, n := range f.sizes() {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			comms := f.group(t, n)
			lengths := []int{0, 1, 3, 64, 1025, 3001}
			shelves := f.shelves(t, comms, vectorBytes(collective.F64, n*3001))
			seed := 0
			for _, req := range requests(n) {
				for i, length := range lengths {
					if length > 64 && (req.Kind != collective.AllReduce || f.brief()) && i%2 == seed%2 {
						continue // half of the long ones
					}
					for k, p := range []place{ordinary, allocated, mixed} {
						if seed++; f.brief() && k != (seed/3)%3 {
							continue
						}
						if check(comms, shelves, p, req, length, seed).ok(t); t.Failed() {
							t.Fatalf("%s, %d elements, %s memory", req, length, p)
						}
					}
				}
			}
		})
	}
}

// large tests vectors that do not fit any cache, or one staging area.
func (f Factory) large(t *testing.T) {
	bytes := []int{1<<20 + 12, 3<<20 - 4}
	sizes := []int{3}
	if !f.brief() {
		bytes, sizes = append(bytes, 64<<20), []int{2, 3, 8}
	}
	for _, n := range sizes {
		n := min(n, f.MaxRanks)
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			comms := f.group(t, n)
			for _, size := range bytes {
				if size > 4<<20 && n > 2 {
					continue
				}
				f.largeOf(t, comms, size)
			}
		})
	}
}

func (f Factory) largeOf(t *testing.T, comms []collective.Comm, bytes int) {
	shelves := f.shelves(t, comms, bytes)
	for _, req := range ramps(len(comms), bytes) {
		places := []place{ordinary, allocated, mixed}
		if bytes > 4<<20 {
			places = places[:1] // of the largest
			if req.Kind == collective.AllReduce {
				places = []place{ordinary, allocated}
			}
		}
		for _, p := range places {
			each(comms, func(c collective.Comm) error { return ramp(c, shelves[c.Rank()].at(p, c.Rank()), req) }).ok(t)
			if t.Failed() {
				t.Fatalf("%s, %s memory", req, p)
			}
		}
	}
}

// ramps are the kinds of collectives of float32s, on so many bytes.
func ramps(ranks, bytes int) []collective.Request {
	vec := collective.Vec{Type: collective.F32, Len: bytes / 4 / ranks * ranks}
	return []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec},
		{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: vec},
		{Kind: collective.AllGather, Vec: vec},
		{Kind: collective.Broadcast, Root: ranks - 1, Vec: vec},
	}
}

// ramp runs req on a vector that is rank+1 times a ramp: 64 MiB times eight ranks is too
// much for the slow reference.
func ramp(c collective.Comm, b Buffer, req collective.Request) error {
	return rampThen(c, b, req, nil)
}

// rampThen is ramp that overwrites the vector with junk at once.
func rampThen(c collective.Comm, b Buffer, req collective.Request, junk []byte) error {
	x := rampOf(req.Vec.Len, c.Rank()+1)
	mem := collective.VecOf(x).Bytes()
	b.Write(mem)
	req.Vec.Ptr = b.Ptr()
	if err := do(c, req); err != nil {
		return err
	}
	b.Read(mem)
	b.Write(junk)
	want, lo, hi := ramped(req, c.Rank(), c.Size())
	if bytes.Equal(collective.VecOf(x[lo:hi]).Bytes(), collective.VecOf(want[lo:hi]).Bytes()) {
		return nil
	}
	for i := lo; i < hi; i++ {
		if x[i] != want[i] {
			return fmt.Errorf("element %d is %v, want %v", i, x[i], want[i])
		}
	}
	return nil
}

// rampOf is n elements of factor times a ramp, mostly copied: loops take long under the race
// detector.
func rampOf(n, factor int) []float32 {
	const period = 1021
	x := make([]float32, n)
	for i := range min(n, period) {
		x[i] = float32(factor * i)
	}
	for done := period; done < n; done *= 2 {
		copy(x[done:], x[:done])
	}
	return x
}

// ramped is what a rank has of ramps in the end; elements [lo, hi) are defined.
func ramped(req collective.Request, rank, ranks int) (want []float32, lo, hi int) {
	n, part := req.Vec.Len, req.Vec.Len/ranks
	switch req.Kind {
	case collective.ReduceScatter:
		return rampOf(n, ranks*(ranks+1)/2), rank * part, (rank + 1) * part
	case collective.AllGather:
		for r := range ranks {
			want = append(want, rampOf(n, r+1)[r*part:(r+1)*part]...)
		}
		return want, 0, n
	case collective.Broadcast:
		return rampOf(n, req.Root+1), 0, n
	}
	return rampOf(n, ranks*(ranks+1)/2), 0, n
}
