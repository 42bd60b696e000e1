package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"ebtrain/collective"
)

// result is what is printed of one size. Times are of one collective, as
// rank 0 saw it.
type result struct {
	Bench      string  `json:"bench"`
	Lib        string  `json:"lib"`
	World      int     `json:"world"`
	Hosts      int     `json:"hosts"`
	Memory     string  `json:"memory"`
	Type       string  `json:"type"`
	Op         string  `json:"op"`
	Bytes      int     `json:"bytes"`
	Count      int     `json:"count"`
	Best       float64 `json:"best_us"`
	P10        float64 `json:"p10_us"`
	Median     float64 `json:"median_us"`
	Alg        float64 `json:"algbw_gbs"`
	AlgP10     float64 `json:"algbw_p10_gbs"`
	AlgMedian  float64 `json:"algbw_median_gbs"`
	Bus        float64 `json:"busbw_gbs"`
	Reps       int     `json:"reps"`
	Wrong      int64   `json:"wrong"`
	Correct    bool    `json:"correct"`
	GoMaxProcs int     `json:"gomaxprocs"`
}

// measureAll measures every size; rank 0 prints.
func measureAll(ctx context.Context, c collective.Comm, opt options, w io.Writer) error {
	if c.Rank() == 0 && !opt.json {
		_, err := fmt.Fprintf(w, "# %s, %d ranks on %d hosts, %s memory, GOMAXPROCS %d, %s %s/%s\n"+
			"# %12s %12s %6s %6s %10s %10s %8s %8s %7s %7s\n# %12s %12s %6s %6s %10s %10s %8s %8s %7s %7s\n",
			opt.kind, c.Size(), opt.hosts, opt.memory, runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH,
			"size", "count", "type", "redop", "time", "median", "algbw", "busbw", "#wrong", "reps",
			"(B)", "(elements)", "", "", "(us)", "(us)", "(GB/s)", "(GB/s)", "", "")
		if err != nil {
			return err
		}
	}
	var wrong int64
	for _, size := range opt.sizes {
		r, err := measure(ctx, c, opt, size)
		if err != nil {
			return err
		}
		wrong += r.Wrong
		if c.Rank() == 0 {
			if err := r.print(w, opt.json); err != nil {
				return err
			}
		}
	}
	if wrong > 0 {
		return fmt.Errorf("rank %d: %d elements were wrong", c.Rank(), wrong)
	}
	return nil
}

func (r result) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(r)
	}
	_, err := fmt.Fprintf(w, "  %12d %12d %6s %6s %10.2f %10.2f %8.3f %8.3f %7d %7d\n",
		r.Bytes, r.Count, r.Type, r.Op, r.Best, r.Median, r.Alg, r.Bus, r.Wrong, r.Reps)
	return err
}

// bench is the vector of one size.
type bench struct {
	collective.Comm
	req   collective.Request
	inner int // collectives between two looks at the clock
}

// measure times one size until rank 0 has seen enough.
func measure(ctx context.Context, c collective.Comm, opt options, size int) (result, error) {
	b := &bench{Comm: c, inner: 1}
	if size <= 1<<20 {
		b.inner = 10
	}
	unit := opt.dtype.Size() * c.Size() // every collective can cut it
	count := (size + unit - 1) / unit * c.Size()
	mem, err := vectorMemory(c, opt, count*opt.dtype.Size())
	if err != nil {
		return result{}, err
	}
	b.req = collective.Request{Kind: opt.kind, Op: opt.op, Label: fmt.Sprintf("%d bytes", size),
		Vec: mem.As(opt.dtype)}
	times, wrong, err := b.repeat(ctx, opt)
	if err != nil {
		return result{}, err
	}
	r := result{Bench: benchName(opt.kind), Lib: "ebtrain-host", World: c.Size(), Hosts: opt.hosts, Memory: opt.memory,
		Type: opt.dtype.String(), Op: opt.op.String(), Bytes: mem.Len, Count: count, Reps: len(times), Wrong: wrong,
		Correct: wrong == 0, GoMaxProcs: runtime.GOMAXPROCS(0)}
	if len(times) > 0 {
		slices.Sort(times)
		best, p10, median := times[0], times[len(times)/10], times[len(times)/2]
		r.Best, r.P10, r.Median = best*1e6, p10*1e6, median*1e6
		gb := float64(mem.Len) / 1e9
		r.Alg, r.AlgP10, r.AlgMedian = gb/best, gb/p10, gb/median
		r.Bus = r.Alg * busFactor(opt.kind, c.Size())
	}
	return r, nil
}

func benchName(k collective.Kind) string {
	if k == collective.AllReduce {
		return "allreduce"
	}
	return k.String()
}

func busFactor(k collective.Kind, n int) float64 {
	f := float64(n-1) / float64(n)
	switch k {
	case collective.AllReduce:
		return 2 * f
	case collective.ReduceScatter, collective.AllGather:
		return f
	}
	return 1
}

func vectorMemory(c collective.Comm, opt options, n int) (collective.Vec, error) {
	if opt.memory == "alloc" {
		return c.Alloc(n)
	}
	words := make([]uint64, (n+7)/8) // aligned for every type
	return collective.Vec{Type: collective.U8, Len: n, Ptr: unsafe.Pointer(unsafe.SliceData(words))}, nil
}

// repeat runs batches until rank 0 says stop, and checks some of them: the
// first ones and every sixteenth.
func (b *bench) repeat(ctx context.Context, opt options) (times []float64, wrong int64, err error) {
	end := time.Now().Add(opt.maxTime)
	stop := make([]int32, 1)
	for batch := 0; ; batch++ {
		checked := batch < 2 || batch%16 == 0
		if checked || b.req.Kind == collective.AllReduce || b.req.Kind == collective.ReduceScatter {
			b.fill()
		}
		if err := collective.Do(ctx, b, collective.Request{Kind: collective.Barrier}); err != nil {
			return nil, 0, err
		}
		begin := time.Now()
		for range b.inner {
			if err := collective.Do(ctx, b, b.req); err != nil {
				return nil, 0, err
			}
		}
		if batch > 0 { // the first one maps memory
			times = append(times, time.Since(begin).Seconds()/float64(b.inner))
		}
		if checked {
			wrong += b.wrong()
		}
		stop[0] = 0
		if len(times)*b.inner >= opt.iters || time.Now().After(end) && len(times) >= 5 {
			stop[0] = 1
		}
		if err := collective.Do(ctx, b, collective.Request{Kind: collective.Broadcast, Vec: collective.VecOf(stop)}); err != nil {
			return nil, 0, err
		}
		if stop[0] != 0 {
			break
		}
	}
	total := []int64{wrong}
	err = collective.Do(ctx, b, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(total)})
	return times, total[0], err
}

// value is element i of rank r's vector at the start of a batch: 1 to 8.
func value(r, i int) float64 { return float64((r*3+i)%8 + 1) }

// fill writes the start of a batch. The pattern repeats every eight elements.
func (b *bench) fill() {
	mem := b.req.Vec.Bytes()
	n := min(8, b.req.Vec.Len)
	for i := range n {
		b.put(i, value(b.Rank(), i))
	}
	for at := n * b.req.Vec.Type.Size(); at < len(mem); at *= 2 {
		copy(mem[at:], mem[:at])
	}
}

// wrong counts elements that are not what the batch must leave.
func (b *bench) wrong() int64 {
	var count int64
	part := b.req.Vec.Len / b.Size()
	tolerance := map[collective.DType]float64{collective.F32: 1e-5, collective.F64: 1e-13, collective.BF16: 0.04}[b.req.Vec.Type]
	for i := range b.req.Vec.Len {
		var want float64
		switch b.req.Kind {
		case collective.AllReduce: // the first one sums, the others multiply
			want = b.sum(i) * math.Pow(float64(b.Size()), float64(b.inner-1))
		case collective.ReduceScatter: // each one adds the other ranks' parts
			if i/part != b.Rank() {
				continue
			}
			own := value(b.Rank(), i)
			want = own + float64(b.inner)*(b.sum(i)-own)
		case collective.AllGather:
			want = value(i/part, i)
		case collective.Broadcast:
			want = value(0, i)
		}
		if got := b.get(i); !(math.Abs(got-want) <= tolerance*want) {
			count++
		}
	}
	return count
}

func (b *bench) sum(i int) float64 {
	var s float64
	for r := range b.Size() {
		s += value(r, i)
	}
	return s
}

func (b *bench) put(i int, x float64) {
	p := unsafe.Add(b.req.Vec.Ptr, i*b.req.Vec.Type.Size())
	switch b.req.Vec.Type {
	case collective.F32:
		*(*float32)(p) = float32(x)
	case collective.F64:
		*(*float64)(p) = x
	case collective.BF16: // 1 to 8 are exact
		*(*uint16)(p) = uint16(math.Float32bits(float32(x)) >> 16)
	}
}

func (b *bench) get(i int) float64 {
	p := unsafe.Add(b.req.Vec.Ptr, i*b.req.Vec.Type.Size())
	switch b.req.Vec.Type {
	case collective.F32:
		return float64(*(*float32)(p))
	case collective.F64:
		return *(*float64)(p)
	}
	return float64(math.Float32frombits(uint32(*(*uint16)(p)) << 16))
}
