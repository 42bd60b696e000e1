package colltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

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
		mem, err := c.Alloc(bytes)
		if err != nil {
			return err
		}
		shelves[c.Rank()].allocated = f.Wrap(c, mem)
		shelves[c.Rank()].ordinary, err = f.Memory(c, bytes)
		return err
	}).ok(t)
	if t.Failed() {
		t.FailNow()
	}
	return shelves
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
			e := epsilon(req.Vec.Type)
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
	n, length := len(comms), bytes/4/len(comms)*len(comms)
	vec := collective.Vec{Type: collective.F32, Len: length}
	for _, req := range []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec},
		{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: vec},
		{Kind: collective.AllGather, Vec: vec},
		{Kind: collective.Broadcast, Root: n - 1, Vec: vec},
	} {
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

// ramp runs req on a vector that is rank+1 times a ramp, and samples the
// result: 64 MiB times eight ranks is too much for the slow reference.
func ramp(c collective.Comm, b Buffer, req collective.Request) error {
	return rampThen(c, b, req, nil)
}

// rampThen is ramp that overwrites the vector with junk at once.
func rampThen(c collective.Comm, b Buffer, req collective.Request, junk []byte) error {
	x := make([]float32, req.Vec.Len)
	for i := range x {
		x[i] = float32((c.Rank() + 1) * (i % 1021))
	}
	mem := collective.VecOf(x).Bytes()
	b.Write(mem)
	req.Vec.Ptr = b.Ptr()
	if err := do(c, req); err != nil {
		return err
	}
	b.Read(mem)
	b.Write(junk)
	n, part := c.Size(), req.Vec.Len/c.Size()
	for i := 0; i < req.Vec.Len; i++ {
		factor := n * (n + 1) / 2
		switch req.Kind {
		case collective.ReduceScatter:
			if i/part != c.Rank() {
				continue
			}
		case collective.AllGather:
			factor = i/part + 1
		case collective.Broadcast:
			factor = req.Root + 1
		}
		if got, want := x[i], float32(factor*(i%1021)); got != want {
			return fmt.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
	return nil
}

// rounding bounds the error of sums and means of numbers that are not exact.
func (f Factory) rounding(t *testing.T) {
	const length = 5000
	for _, n := range f.sizes() {
		comms := f.group(t, n)
		in := make([][]float64, n)
		for r := range in {
			in[r] = make([]float64, length)
			for i := range in[r] {
				in[r][i] = real(n, r, i)
			}
		}
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
		return float64(len(cut)) / 2 * epsilon(d) * sum
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

// program runs long random sequences with ranks out of step.
func (f Factory) program(t *testing.T) {
	steps := 100
	if f.brief() {
		steps = 30
	}
	for _, n := range f.sizes() {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			comms := f.group(t, n)
			shelves := f.shelves(t, comms, vectorBytes(collective.F64, n*1000))
			each(comms, func(c collective.Comm) error { return randomProgram(c, shelves[c.Rank()], steps) }).ok(t)
		})
	}
}

func randomProgram(c collective.Comm, s shelf, steps int) error {
	rng := rand.New(rand.NewPCG(1, 2)) // the same on every rank
	own := rand.New(rand.NewPCG(3, uint64(c.Rank())))
	reqs := requests(c.Size())
	for step := range steps {
		req := reqs[rng.IntN(len(reqs))]
		length := rng.IntN(1000)
		if own.IntN(10) == 0 {
			time.Sleep(time.Duration(own.IntN(300)) * time.Microsecond)
		}
		if req.Kind == collective.Barrier {
			if err := do(c, req); err != nil {
				return err
			}
			continue
		}
		if req.Kind == collective.ReduceScatter || req.Kind == collective.AllGather {
			length *= c.Size()
		}
		p := []place{ordinary, allocated, mixed}[rng.IntN(3)]
		if err := programStep(c, s.at(p, c.Rank()), req, length, step); err != nil {
			return fmt.Errorf("step %d, %s, %s memory: %w", step, req, p, err)
		}
	}
	return nil
}

func programStep(c collective.Comm, b Buffer, req collective.Request, length, seed int) error {
	in := make([][]float64, c.Size())
	for r := range in {
		in[r] = make([]float64, length)
		for i := range in[r] {
			in[r][i] = whole(req.Vec.Type, seed, r, i)
		}
	}
	v := newVector(b, req.Vec.Type, in[c.Rank()])
	req.Vec = v.vec
	if err := do(c, req); err != nil {
		return err
	}
	got, err := v.values()
	if err != nil {
		return err
	}
	want := expected(req, in)[c.Rank()]
	e := epsilon(req.Vec.Type)
	return compare(got, want, func(i int) float64 {
		if req.Op == collective.Mean {
			return e * abs(want[i])
		}
		return 0
	})
}

// inFlight starts many collectives before it waits for any.
func (f Factory) inFlight(t *testing.T) {
	const count, length = 100, 257
	for _, n := range []int{1, min(2, f.MaxRanks), min(5, f.MaxRanks)} {
		comms := f.group(t, n)
		var mu sync.Mutex // of buffers that outlive do
		var keep []Buffer
		each(comms, func(c collective.Comm) error {
			var pending []collective.Pending
			var vectors []vector
			for k := range count {
				values := make([]float64, length)
				for i := range values {
					values[i] = float64(k + c.Rank())
				}
				b, err := f.Memory(c, vectorBytes(collective.F64, length))
				if err != nil {
					return err
				}
				mu.Lock()
				keep = append(keep, b)
				mu.Unlock()
				v := newVector(b, collective.F64, values)
				vectors = append(vectors, v)
				pending = append(pending, c.Start(collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: v.vec}))
			}
			for k := count - 1; k >= 0; k-- { // the last first
				if err := wait(pending[k]); err != nil {
					return err
				}
				got, err := vectors[k].values()
				if err != nil {
					return err
				}
				if want := float64(k*n + n*(n-1)/2); got[0] != want || got[length-1] != want {
					return fmt.Errorf("collective %d: got %v and %v, want %v", k, got[0], got[length-1], want)
				}
			}
			return nil
		}).ok(t)
	}
}

// alloc tests the memory itself.
func (f Factory) alloc(t *testing.T) {
	comms := f.group(t, min(3, f.MaxRanks))
	each(comms, func(c collective.Comm) error {
		for _, n := range []int{0, 1, 63, 4096, 5000, 3 << 20} {
			mem, err := c.Alloc(n)
			if err != nil {
				return err
			}
			if len(mem) != n {
				return fmt.Errorf("alloc of %d bytes gave %d", n, len(mem))
			}
			b := f.Wrap(c, mem)
			if n > 0 && uintptr(b.Ptr())%64 != 0 {
				return fmt.Errorf("alloc of %d bytes at %p, want a multiple of 64", n, b.Ptr())
			}
			got := make([]byte, n)
			b.Read(got)
			for i, x := range got {
				if x != 0 {
					return fmt.Errorf("alloc of %d bytes: byte %d is %d, want 0", n, i, x)
				}
			}
			for i := range got {
				got[i] = byte(c.Rank() + 1)
			}
			b.Write(got) // another rank's memory must not change
			if err := do(c, collective.Request{Kind: collective.Barrier}); err != nil {
				return err
			}
			b.Read(got)
			for i, x := range got {
				if x != byte(c.Rank()+1) {
					return fmt.Errorf("alloc of %d bytes: byte %d is %d, want %d: ranks overlap", n, i, x, c.Rank()+1)
				}
			}
			if err := do(c, collective.Request{Kind: collective.Barrier}); err != nil {
				return err
			}
		}
		for i := range 200 { // ranks hurry ahead of each other
			mem, err := c.Alloc(i)
			if err != nil || len(mem) != i {
				return fmt.Errorf("alloc %d of many: %d bytes, %w", i, len(mem), err)
			}
		}
		if _, err := c.Alloc(-1); err == nil {
			return fmt.Errorf("alloc of -1 bytes succeeded")
		}
		return nil
	}).ok(t)
}

// reuse overwrites a vector as soon as its collective is complete on this
// rank: no other rank may still read it.
func (f Factory) reuse(t *testing.T) {
	const length = 240 << 10
	repeats := 8
	if f.brief() {
		repeats = 2
	}
	n := min(4, f.MaxRanks)
	comms := f.group(t, n)
	shelves := f.shelves(t, comms, 4*length)
	vec := collective.Vec{Type: collective.F32, Len: length}
	for _, req := range []collective.Request{
		{Kind: collective.AllReduce, Op: collective.Sum, Vec: vec},
		{Kind: collective.ReduceScatter, Op: collective.Sum, Vec: vec},
		{Kind: collective.AllGather, Vec: vec},
		{Kind: collective.Broadcast, Root: n - 1, Vec: vec},
	} {
		for _, p := range []place{ordinary, allocated, mixed} {
			each(comms, func(c collective.Comm) error {
				b := shelves[c.Rank()].at(p, c.Rank())
				junk := make([]byte, 4*length)
				for i := range junk {
					junk[i] = guardByte
				}
				for range repeats {
					if err := rampThen(c, b, req, junk); err != nil {
						return err
					}
				}
				return nil
			}).ok(t)
			if t.Failed() {
				t.Fatalf("%s, %s memory", req, p)
			}
		}
	}
}
