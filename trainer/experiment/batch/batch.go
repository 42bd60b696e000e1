// Package batch gives computed experiments the samples that they compute with.
package batch

import (
	"context"
	"errors"

	"ebtrain/data"
	"ebtrain/data/loader"
)

// First are the first samples of a split in the order of a seed, in the
// range that the model takes.
func First(ctx context.Context, src data.Source, r loader.Range, n int, seed uint64) (x []float32, err error) {
	ld, err := loader.New(src, loader.Config{Seed: seed, Batch: n, World: 1, Tail: loader.Carry, Shuffle: true, Range: r})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ld.Close()) }()
	b, err := ld.Next(ctx)
	if err != nil {
		return nil, err
	}
	return append(x, b.X...), nil
}
