package main

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
)

// pool is synthetic data: smooth numbers in [low, 1], as bytes, four batches of
// a rank. A step copies a batch of it into its input, as a loader would.
type pool struct {
	data  []uint8
	batch int // values in a rank's batch
	low   float64
	next  int
}

const poolBatches = 4

// newPool fills a pool for the images of a step, whose first sample has number
// first in the global batch. Neighbours along the last axis differ little.
func newPool(t *exec.Tensor, low float64, seed uint64, first int) *pool {
	samples := t.Type.Shape.At(0)
	p := &pool{batch: t.Type.Shape.Len(), low: low}
	p.data = make([]uint8, poolBatches*p.batch)
	each := p.batch / samples
	knots := make([]float64, each/8+2)
	for i := range poolBatches * samples {
		philox.Name{Seed: seed, Purpose: philox.Testing, Sub: 1 << 15, Sample: uint32(first + i)}.Uniform(knots)
		row := p.data[i*each : (i+1)*each]
		for j := range row {
			f := float64(j%8) / 8
			row[j] = uint8(255 * ((1-f)*knots[j/8] + f*knots[j/8+1]))
		}
	}
	return p
}

// fill copies the next batch.
func (p *pool) fill(dst []float32) {
	from := p.data[p.next*p.batch : (p.next+1)*p.batch]
	p.next = (p.next + 1) % poolBatches
	scale, low := float32((1-p.low)/255), float32(p.low)
	for i, v := range from {
		dst[i] = low + scale*float32(v)
	}
}

// feed fills all inputs of step number step.
func (b *bench) feed(step int64) {
	b.pool.fill(b.step.Input(algo.InputImages).F32())
	if key := b.step.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(b.o.seed), step, int64(b.rank * b.o.batch / b.world)})
	}
	b.schedule(step, 0)
}
