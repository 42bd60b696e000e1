package ddp

import (
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/graph"
)

// Bucket sizes in bytes. The first bucket is small, so that communication
// starts early in the backward pass (PyTorch DDP's defaults), and so is the last one:
// nothing is left to be computed while it travels.
const (
	firstBucketBytes = 1 << 20
	bucketBytes      = 25 << 20
	lastBucketBytes  = 4 << 20
)

// Sync returns the means over world ranks of grads, which must be the same
// list on every rank. Gradients are put into buckets from last to first, the
// order in which a backward pass makes them, and each bucket travels as one
// all-reduce labelled "name/bucket i". All gradients have one element type. After an
// error of b it returns grads.
func Sync(b *graph.Builder, world int, name string, grads []graph.ID) []graph.ID {
	if world == 1 || b.Err() != nil {
		return grads
	}
	means := make([]graph.ID, len(grads))
	for i, bucket := range buckets(b, grads) {
		values := make([]graph.ID, len(bucket))
		for j, k := range bucket {
			values[j] = grads[k]
		}
		out := b.AllReduce(collective.Mean, fmt.Sprintf("%s/bucket %d", name, i), values...)
		for j, k := range bucket {
			means[k] = out[j]
		}
	}
	return means
}

// buckets cuts the indices of grads, last to first, into runs of limited size.
// A gradient larger than the limit has a bucket to itself.
func buckets(b *graph.Builder, grads []graph.ID) [][]int {
	var all [][]int
	var bucket []int
	size, limit := 0, firstBucketBytes
	for i := len(grads) - 1; i >= 0; i-- {
		n := b.Type(grads[i]).Bytes()
		if len(bucket) > 0 && size+n > limit {
			all = append(all, bucket)
			bucket, size, limit = nil, 0, bucketBytes
		}
		bucket = append(bucket, i)
		size += n
	}
	if len(bucket) > 0 {
		all = append(all, bucket)
	}
	return splitLast(b, grads, all)
}

// splitLast cuts off the end of the last bucket what may be in one of its own: nothing
// if all of it may, or not even the last gradient.
func splitLast(b *graph.Builder, grads []graph.ID, all [][]int) [][]int {
	if len(all) == 0 {
		return all
	}
	bucket := all[len(all)-1]
	at, size := len(bucket), 0
	for at > 0 {
		n := b.Type(grads[bucket[at-1]]).Bytes()
		if size+n > lastBucketBytes {
			break
		}
		at, size = at-1, size+n
	}
	if at == 0 || at == len(bucket) {
		return all
	}
	return append(all[:len(all)-1], bucket[:at:at], bucket[at:])
}
