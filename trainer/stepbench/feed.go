package main

import (
	"ebtrain/data"
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

// sentences are synthetic, of words that are drawn one by one, four batches of a rank.
type sentences struct {
	data []int32
	next int
}

// newSentences are those of a step's tokens (n, L), each as long as can be, of words
// beyond the reserved ones.
func newSentences(t *exec.Tensor, words int, seed uint64, first int) *sentences {
	n, l := t.Type.Shape.At(0), t.Type.Shape.At(1)
	s := &sentences{data: make([]int32, poolBatches*n*l)}
	draws := make([]float64, l)
	for i := range poolBatches * n {
		philox.Name{Seed: seed, Purpose: philox.Testing, Sub: 1 << 15, Sample: uint32(first + i)}.Uniform(draws)
		row := s.data[i*l : (i+1)*l]
		for j, u := range draws {
			row[j] = min(data.Reserved+int32(u*float64(words-data.Reserved)), int32(words-1))
		}
		row[0], row[l-1] = data.Begin, data.End
	}
	return s
}

// fill copies the next batch into tokens (n, L), and its lengths.
func (s *sentences) fill(tokens, lengths *exec.Tensor) {
	to := tokens.I32()
	copy(to, s.data[s.next*len(to):])
	s.next = (s.next + 1) % poolBatches
	for i := range lengths.I32() {
		lengths.I32()[i] = int32(tokens.Type.Shape.At(1))
	}
}

// newSource is synthetic data for the samples that the step reads, and what copies the
// next batch of them into it.
func (b *bench) newSource() func() {
	if tokens := b.step.Input(algo.InputTokens); tokens != nil {
		s := newSentences(tokens, vocabulary, b.o.seed, b.rank*poolBatches*tokens.Type.Shape.At(0))
		lengths := b.step.Input(algo.InputLengths)
		return func() { s.fill(tokens, lengths) }
	}
	images := b.step.Input(algo.InputImages)
	p := newPool(images, b.net.low, b.o.seed, b.rank*poolBatches*images.Type.Shape.At(0))
	return func() { p.fill(images.F32()) }
}

// feed fills all inputs of step number step.
func (b *bench) feed(step int64) {
	b.source()
	if key := b.step.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{int64(b.o.seed), step, int64(b.rank * b.o.batch / b.world)})
	}
	b.schedule(step, epochOf(step))
}

// moving is how many steps move the weights as the method does. On noise the networks
// diverge after some 50 steps, which a GPU does within one sample; what is not finite is
// no measure.
const moving = 32

// epochOf is the epoch of a step: beyond those that move the weights one in which nothing is
// left of a learning rate that decays.
func epochOf(step int64) int {
	if step < moving {
		return 0
	}
	return 1 << 20
}
