package gorgoniaddp

import (
	"context"
	"fmt"

	"ebtrain/collective"
)

// A bucket is a flat run of memory that holds the members, one behind the
// other, while they travel.
type bucket struct {
	members []int // positions in the list of learnables
	vec     collective.Vec
}

// plan puts each of mems into a bucket of its type, in order, and opens a new
// bucket where the next member would take the last one past limit bytes. The
// result depends only on types and lengths, so it is the same on every rank.
func plan(mems []collective.Vec, limit int) []bucket {
	var buckets []bucket
	open := map[collective.DType]int{} // position of the bucket that takes more
	for i, m := range mems {
		at, ok := open[m.Type]
		if !ok || (buckets[at].vec.Len+m.Len)*m.Type.Size() > limit {
			at = len(buckets)
			open[m.Type] = at
			buckets = append(buckets, bucket{vec: collective.Vec{Type: m.Type}})
		}
		b := &buckets[at]
		b.members = append(b.members, i)
		b.vec.Len += m.Len
	}
	return buckets
}

// pack copies the members from mems into the bucket.
func (b *bucket) pack(mems []collective.Vec) {
	to := b.vec.Bytes()
	for _, i := range b.members {
		to = to[copy(to, mems[i].Bytes()):]
	}
}

// unpack copies the members from the bucket to mems.
func (b *bucket) unpack(mems []collective.Vec) {
	from := b.vec.Bytes()
	for _, i := range b.members {
		from = from[copy(mems[i].Bytes(), from):]
	}
}

// exchange runs req on every bucket of mems: all are started before the first
// is waited for. Every collective is over when exchange returns; after an
// error the group is aborted and mems may be partly exchanged.
func (r *Replica) exchange(ctx context.Context, req collective.Request, mems []collective.Vec) error {
	what := req.Label
	pending := make([]collective.Pending, len(r.buckets))
	for i := range r.buckets {
		r.buckets[i].pack(mems)
		req.Vec = r.buckets[i].vec
		req.Label = fmt.Sprintf("%s/bucket %d", what, i)
		pending[i] = r.comm.Start(req)
	}
	var first error // the later ones only repeat it: the group is aborted
	for i, p := range pending {
		err := p.Wait(ctx)
		if err == nil && first == nil {
			r.buckets[i].unpack(mems)
		}
		if err != nil && first == nil {
			first = fmt.Errorf("gorgoniaddp: %s: bucket %d of %d: %w", what, i, len(pending), err)
		}
	}
	return first
}
