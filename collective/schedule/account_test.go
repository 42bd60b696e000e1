package schedule

import (
	"testing"

	"ebtrain/collective"
)

// bytesOf are those of a verb in steps.
func bytesOf(do Verb, steps []Step) (sum int) {
	for _, s := range steps {
		if s.Do == do {
			sum += s.Bytes
		}
	}
	return sum
}

// Between hosts the ranks of one read each of its vectors once between them, of a
// reduce-scatter all its parts; each takes out what it has not: of an all-gather all parts
// but its own, of a broadcast the vector.
func TestBytesOfAHost(t *testing.T) {
	const n = 1 << 16
	for locals := 1; locals <= 5; locals++ {
		for _, ranks := range []int{locals + 1, 2*locals + 3, 4 * locals} {
			of := func(kind collective.Kind, local int) Call {
				return Call{Kind: kind, Bytes: n, Elem: 4, Wide: 4, Ranks: ranks, Hosts: 2, Locals: locals, Local: local, All: true}
			}
			var sums, inPlace, parts int
			for local := range locals {
				c := of(collective.AllReduce, local)
				sums += bytesOf(Reduce, c.combine(nil, 128, 128+n))
				inPlace += bytesOf(Reduce, c.inPlace(nil))
				parts += bytesOf(Reduce, of(collective.ReduceScatter, local).combine(nil, 128, 128+n))
				if got, want := bytesOf(Copy, of(collective.AllGather, local).takeOut(nil, 128, 128+n)), (ranks-1)*n; got != want {
					t.Errorf("all-gather, %d ranks: one copies %d bytes, want %d", ranks, got, want)
				}
				b := of(collective.Broadcast, local)
				if got := bytesOf(Copy, b.takeOut(nil, 128, 128+n)); got != n {
					t.Errorf("broadcast: a rank copies %d bytes, want %d", got, n)
				}
				if b.Root = true; bytesOf(Copy, b.takeOut(nil, 128, 128+n)) != 0 {
					t.Error("broadcast: the root copies what it has")
				}
			}
			if sums != locals*n || parts != locals*ranks*n {
				t.Errorf("%d of %d ranks read %d bytes of an all-reduce and %d of a reduce-scatter, want %d and %d", locals, ranks, sums, parts, locals*n, locals*ranks*n)
			}
			if want := locals * n; locals > 1 && inPlace != want {
				t.Errorf("%d of %d ranks read %d bytes in place, want %d", locals, ranks, inPlace, want)
			}
		}
	}
}
