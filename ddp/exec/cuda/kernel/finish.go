package kernel

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

//go:embed finish.h
var finishHeader string

// finishing is a reduction of partial results, which lie in scratch memory, to results.
type finishing struct {
	part, squares int // offsets of float64, or int64, in the scratch memory; squares -1 if there are none
	out           operand
	how           how
	count         float64 // points of a result, where there are squares
	kept, over    axes    // of the partial results
}

// axes are extents and strides, of at most graph.MaxRank axes.
type axes struct{ dims, strides []int }

func (a axes) len() int {
	n := 1
	for _, d := range a.dims {
		n *= d
	}
	return n
}

// finishing is what is left to do for a reduction whose results are in parts.
func (r *reduction) finishing(sum int) finishing {
	red := r.f.Sums[sum]
	acc := accumulators(red)
	f := finishing{part: r.part[slices.Index(r.acc, acc[0])], squares: -1, out: r.outs[sum], how: acc[0].how}
	if len(acc) == 2 {
		f.squares = r.part[slices.Index(r.acc, acc[1])]
	}
	f.count = float64(r.f.Dims.Len()) / float64(f.out.dims.Len())
	dims, strides := r.partial(red.Access)
	step := 1
	for i := len(dims) - 1; i >= 0; i-- {
		a := &f.over
		if strides[i] != 0 {
			a = &f.kept
		}
		if dims[i] > 1 {
			a.dims, a.strides = append([]int{dims[i]}, a.dims...), append([]int{step}, a.strides...)
		}
		step *= dims[i]
	}
	return f
}

// partial is the access of a reduction as one of the partial results, which lie as
// (outer, columns).
func (r *reduction) partial(a plan.Access) (dims, strides []int) {
	last := len(a.Dims) - 1
	if a.Scalar() {
		return []int{r.outer * r.columns}, []int{0}
	}
	if r.columns > 1 {
		dims = append(slices.Clone(a.Dims[:last-1]), a.Dims[last-1]/r.middle, r.columns)
		return dims, append(slices.Clone(a.Strides[:last-1]), 0, 1)
	}
	return append(slices.Clone(a.Dims[:last]), a.Dims[last]/r.middle), append(slices.Clone(a.Strides[:last]), 0)
}

// finish is what finishes several reductions: each takes some blocks, in which so many
// threads, a power of 2, share each result.
type finish struct{ entries []finishing }

const finishMost = 8 // entries of a kernel: their arguments stay below 4 KiB

// launches writes kernels that do nothing else.
func (f *finish) launches() (all []Launch, err error) {
	for part := range slices.Chunk(f.entries, finishMost) {
		l, err := finishLaunch(part)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// finishLaunch writes one, whose text is the same whatever the reductions are.
func finishLaunch(entries []finishing) (Launch, error) {
	s := &source{}
	s.helper(finishHeader + finishBlock())
	s.int("n", len(entries))
	s.declare("struct finishing ", fmt.Sprintf("e[%d]", finishMost))
	grid := 0
	for _, e := range entries {
		grid += e.arguments(&s.params, grid)
	}
	s.size = 8 + finishMost*finishBytes // the rest is not read
	s.line(`KERNEL_SYNC(NAME, %d, struct NAME_args) {
	SHARED(double, sum, [%[1]d]);
	SHARED(double, square, [%[1]d]);
	int k = 0;
	while (k + 1 < a.n && BID >= a.e[k + 1].first)
		k++;
	finishBlock(&a.e[k], BID - a.e[k].first, sum, square);
}`, Block)
	return s.launch("finish", grid)
}

// within adds the entries to a reduction's kernel, whose last block finishes them.
func (f *finish) within(s *source) {
	s.helper(finishHeader + finishBlock())
	s.declare("struct finishing ", fmt.Sprintf("e[%d]", len(f.entries)))
	for _, e := range f.entries {
		e.arguments(&s.params, 0)
	}
}

// finishBlock is the function that does the results of one of an entry's blocks.
func finishBlock() string {
	var put strings.Builder
	for i, d := range finishTypes {
		x, reg := "s", "double"
		if i >= 3 {
			x, reg = "l", "i64"
		}
		fmt.Fprintf(&put, "\n\tcase %d: ((%s *)e->out)[r] = %s; break;", i, ctype(d), stored(d, reg, x))
	}
	return fmt.Sprintf(`DEVICE void finishBlock(const struct finishing *e, int block, double *sum, double *square) {
	const int T = e->threads, lane = TID & (T - 1);
	const i64 r = (i64)block * (%d / T) + TID / T;
	const i64 base = finishOffset(r, e->nkept, e->kept, e->keptStride);
	const i64 terms = r < e->results ? e->terms : 0;
	i64 l = e->how == 2 ? (i64)((u64)1 << 63) : 0;
	double s = e->how == 2 ? BITSF64(0xfff0000000000000ULL) : 0, q = 0;
	const int ints = e->type >= 3;
	for (i64 i = lane; i < terms; i += T) {
		const i64 at = base + finishOffset(i, e->nover, e->over, e->overStride);
		if (ints) {
			const i64 x = ((const i64 *)e->part)[at];
			l = e->how == 2 ? maxL(l, x) : (i64)((u64)l + (u64)x);
			continue;
		}
		const double x = ((const double *)e->part)[at];
		s = e->how == 2 ? maxD(s, x) : s + x;
		if (e->squares)
			q += ((const double *)e->squares)[at];
	}
	sum[TID] = ints ? BITSF64((u64)l) : s;
	square[TID] = q;
	for (int d = T / 2; d > 0; d /= 2) {
		SYNC();
		if (lane >= d)
			continue;
		if (ints) {
			const i64 x = (i64)F64BITS(sum[TID + d]);
			l = e->how == 2 ? maxL(l, x) : (i64)((u64)l + (u64)x);
			sum[TID] = BITSF64((u64)l);
			continue;
		}
		s = e->how == 2 ? maxD(s, sum[TID + d]) : s + sum[TID + d];
		q += square[TID + d];
		sum[TID] = s;
		square[TID] = q;
	}
	if (lane > 0 || r >= e->results)
		return;
	if (e->squares)
		s = maxD(0, q - s * s / e->count);
	switch (e->type) {%s
	}
}
`, Block, put.String())
}

// finishTypes are the numbers of types of results; from 3 on they are integers.
var finishTypes = []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8}

// finishBytes is the size of a struct finishing.
const finishBytes = 3*8 + 8 + 2*8 + 4*6*4 + 8*4

// arguments packs the entry, whose first block is that, and returns its blocks.
func (e *finishing) arguments(p *params, first int) (blocks int) {
	p.size = (p.size + 7) / 8 * 8
	start := p.size
	p.add(8, field{kind: scratchField, bits: uint64(e.part)})
	if e.squares >= 0 {
		p.add(8, field{kind: scratchField, bits: uint64(e.squares)})
	} else {
		p.add(8, field{})
	}
	p.add(8, field{kind: valueField, value: e.out.value})
	p.addDouble(e.count)
	results, terms := e.kept.len(), e.over.len()
	p.add(8, field{bits: uint64(results)})
	p.add(8, field{bits: uint64(terms)})
	for _, list := range [][]int{e.kept.dims, e.kept.strides, e.over.dims, e.over.strides} {
		for i := range 6 {
			v := 1
			if i < len(list) {
				v = list[i]
			}
			p.add(4, field{bits: uint64(v)})
		}
	}
	threads := 1
	for threads < Block && 4*threads < terms {
		threads *= 2
	}
	blocks = ceil(results*threads, Block)
	for _, v := range []int{len(e.kept.dims), len(e.over.dims), threads, slices.Index(finishTypes, e.out.dtype), int(e.how), first, blocks, 0} {
		p.add(4, field{bits: uint64(v)})
	}
	if p.size-start != finishBytes {
		panic(fmt.Sprintf("kernel: an entry of finish has %d bytes, not %d", p.size-start, finishBytes))
	}
	return blocks
}
