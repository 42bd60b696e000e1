// Package loader turns a data.Source into batches. Sentences come in batches of
// one length, a bucket: the order is that of any samples, and each waits until
// its bucket fills a batch.
//
// Invariants:
//
//   - The order is a pure function: (seed, epoch, position) → sample. Neither
//     world size, rank, prefetch nor timing enters it.
//   - Sizes are global. A batch has Batch slots over all ranks; rank r of n
//     fills slots [r·Batch/n, (r+1)·Batch/n), so the ranks' parts, one after
//     another, are the batch of a world of one.
//   - Every sample is in an epoch exactly once. What does not fill the last
//     batch is carried into the next epoch, masked, or dropped; it is never
//     repeated. Only samples that cannot be read are left out, if that is asked
//     for: Config.Quarantine.
//   - A State restores the stream exactly, at any world size and batch; of sentences,
//     damage that it does not know of costs its own sentences and no other.
//
// The methods of a Loader must be called from one goroutine at a time. With
// Prefetch a Loader owns one goroutine; Close ends it and waits.
package loader

import (
	"errors"
	"fmt"

	"ebtrain/data"
)

// Tail says what becomes of the samples that do not fill an epoch's last batch.
type Tail int

const (
	// Carry fills the batch with the first samples of the next epoch; the
	// stream has no end. For training.
	Carry Tail = iota
	// Mask leaves the batch's last slots empty, with weight 0. For evaluation.
	Mask
	// Drop leaves those samples out of this epoch.
	Drop
)

// Range says which float32 values the bytes of a picture become.
type Range int

const (
	// Symmetric maps x to x/127.5 − 1, in [−1, 1].
	Symmetric Range = iota
	// Unit maps x to x/255, in [0, 1].
	Unit
)

// Config of a Loader. The zero value lacks only Batch.
type Config struct {
	Seed  uint64 // of the run; names the order and the flips
	Batch int    // samples per step over all ranks; a multiple of World
	Rank  int    // 0 … World−1
	World int    // number of ranks; 0 means 1
	Tail  Tail
	// Shuffle orders each epoch anew: all blocks are permuted, and then the
	// samples of each pool of blocks. Without it samples come by index.
	Shuffle bool
	// ShuffleMemory limits the bytes of decoded samples that a rank keeps for
	// shuffling; it decides the size of a pool, and so the order. 0 means pools of
	// 16,384 samples and 256 blocks at least, of which up to two are in memory.
	ShuffleMemory int64
	// Passes is the number of epochs until io.EOF; 0 means no end. Carry has no
	// end.
	Passes int
	// Range of pictures stored as bytes; pictures stored as F32 are as stored.
	Range Range
	// Flip mirrors pictures left to right, each with probability ½ in each
	// epoch.
	Flip bool
	// Prefetch is the number of batches made ahead; 0 makes them in Next.
	Prefetch int
	// Quarantine, if not nil, is called once for each block found damaged, or for a file
	// of which nothing can be read (Frame is −1), and the
	// block's samples are left out from then on: with Carry another sample, of the
	// pool if it has one, takes the place of each, else its slot gets weight 0. It may be called
	// from the prefetching goroutine. If nil, damage is an error of Next.
	Quarantine func(*data.CorruptError)
}

// Validate reports all problems of c at once.
func (c Config) Validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.World < 1, "world of %d ranks, expected at least 1", c.World)
	bad(c.Rank < 0 || c.Rank >= max(c.World, 1), "rank %d, expected 0 to %d", c.Rank, c.World-1)
	bad(c.Batch < 1, "batch of %d samples, expected at least 1", c.Batch)
	bad(c.World > 0 && c.Batch%max(c.World, 1) != 0, "batch of %d samples cannot be shared equally by %d ranks; choose a multiple of %d", c.Batch, c.World, c.World)
	bad(c.Tail < Carry || c.Tail > Drop, "unknown tail %d", c.Tail)
	bad(c.Range < Symmetric || c.Range > Unit, "unknown range %d", c.Range)
	bad(c.Passes < 0, "%d passes, expected 0 (no end) or more", c.Passes)
	bad(c.Passes > 0 && c.Tail == Carry, "%d passes with a carried tail, which has no end; mask or drop it", c.Passes)
	bad(c.ShuffleMemory < 0, "%d bytes of memory for shuffling, expected 0 (pools of %d samples) or more", c.ShuffleMemory, poolSamples)
	bad(c.Prefetch < 0 || c.Prefetch > 1024, "%d batches of prefetch, expected 0 to 1024", c.Prefetch)
	return errors.Join(errs...)
}

// Batch is this rank's part of a global batch: n = Batch/World samples in
// slots First … First+n−1. It is valid until the next call of Next, Restore or
// Close, which reuse its memory.
type Batch struct {
	X       []float32 // (n, C, H, W); nil of sentences
	Labels  []int64   // (n); −1 without labels and in empty slots
	Indices []int64   // (n) sample indices in the split; −1 in empty slots
	Weight  []float32 // (n); 1, or 0 for slots that must not count
	First   int       // global slot of the first local sample
	// Epoch and Position are those of global slot 0; Position counts samples
	// from the epoch's begin.
	Epoch, Position int64

	// Of sentences: all of the global batch are of one bucket, padded to its length.
	// An empty slot has no tokens. Epoch and Position are where the search for the
	// batch began.
	Tokens  []int32 // (n, Length); data.Padding after the end
	Lengths []int32 // (n); tokens, begin and end included
	Length  int

	next spot // of the batch after this one
}
