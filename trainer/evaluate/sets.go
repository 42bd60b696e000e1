package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"ebtrain/data/dataset"
	"ebtrain/data/loader"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/eval/compare"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/trained"
)

// Names of the sets that are compared with training pictures, or sentences.
const (
	setSamples  = "samples"
	setNormal   = "N(0, I)" // samples of latents that no prior has drawn
	setFloor    = "floor"
	setNoise    = "noise"
	setBlurred  = "blurred"
	setOneClass = "one class"
	setUnigram  = "unigram"
	setShuffled = "shuffled"
	setTen      = "ten sentences"
	setCopies   = "copies"
)

// setNames are all of them, in the order of the table.
func setNames() []string {
	return []string{setSamples, setNormal, setFloor, setNoise, setBlurred, setOneClass, setUnigram, setShuffled, setTen, setCopies}
}

// sizeOf is the size of the pictures, or of points, vectors whatever their shape.
func sizeOf(in algo.Inputs) feature.Size {
	if trained.Points(in) {
		return feature.Size{C: 1, H: 1, W: in.Shape.Len()}
	}
	return feature.Size{C: in.Shape.At(0), H: in.Shape.At(1), W: in.Shape.At(2)}
}

// pictures are real pictures and their labels.
type pictures struct {
	compare.Set
	labels []int64
	n      int
}

// first are the first n of them, as another set.
func (p pictures) first(name string, n int) compare.Set {
	return compare.Set{Name: name, X: p.X[:len(p.X)/p.n*n]}
}

// real reads n pictures of a split, 0 for all, chosen by the seed if it has more.
func (e *evaluation) real(ctx context.Context, name, data, split string, n int) (p pictures, err error) {
	all, err := e.size(data, split)
	if err != nil {
		return p, err
	}
	p.Name, p.X = name, make([]float32, 0, int(least(all, int64(n)))*e.takes.Shape.Len())
	p.n, err = e.each(ctx, pass{phase: name, data: data, split: split, limit: int64(n), random: true}, func(x []float32, labels []int64) error {
		p.X, p.labels = append(p.X, x...), append(p.labels, labels...)
		return nil
	})
	e.symmetric(p.X)
	p.Key = keyOf(p.X)
	return p, err
}

// keyOf names pictures by what they are: whichever were chosen, and however.
func keyOf(x []float32) string {
	h, b := sha256.New(), make([]byte, 0, 4<<10)
	for some := range slices.Chunk(x, cap(b)/4) {
		b = b[:0]
		for _, v := range some {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		_, _ = h.Write(b) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil))
}

// symmetric brings a model's values to [−1, 1], in place.
func (e *evaluation) symmetric(x []float32) {
	if e.takes.Range != loader.Unit {
		return
	}
	for i, v := range x {
		x[i] = 2*v - 1
	}
}

// drawn are samples of the model.
func (e *evaluation) drawn(ctx context.Context) (s compare.Set, err error) {
	plan, err := e.trained.Model.(algo.Sampler).Sample(trained.Modes[e.o.stats], e.drawing())
	if err != nil {
		return s, err
	}
	x, err := e.draw(ctx, setSamples, plan, nil)
	e.symmetric(x)
	return compare.Set{Name: setSamples, X: x}, err
}

// drawing is how many samples are drawn at a time.
func (e *evaluation) drawing() int { return min(e.o.batch, e.o.samples) }

// draw runs a plan of so many samples until there are --samples. The ranks share the
// draws, each named by its number. Before that of the samples from … to, begin sets what
// it begins from, if it is not nil.
func (e *evaluation) draw(ctx context.Context, phase string, plan chain.Plan, begin func(from, to int) error) (x []float32, err error) {
	batch := e.drawing()
	c, err := e.trained.Chain(e.backend, plan, "--batch")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	at := e.drawingOf(phase, plan.Transitions())
	return feature.Shared(ctx, e.comm, phase, e.o.samples, batch, e.takes.Shape.Len(), func(from, to int, out []float32) error {
		words := philox.Name{Seed: e.o.seed, Purpose: philox.Sampling, Sub: philox.SamplingSeed, Sample: uint32(from / batch)}.Block(0)
		seed := uint64(words[0])<<32 | uint64(words[1])
		err := c.Reset(seed)
		if err == nil && begin != nil {
			err = begin(from, to)
		}
		if err != nil {
			return err
		}
		t, err := c.Continue(ctx, seed, func(done, _ int) { at(from/batch, done) })
		if err == nil {
			copy(out, t.F32())
		}
		return err
	})
}

// lessBySamples is what makes fewer samples where they are drawn and compared.
const lessBySamples = "fewer --samples"

// drawingOf shows how far the first rank is in its draws, each a chain of so many
// transitions: of long chains in these, since a single draw may take minutes.
func (e *evaluation) drawingOf(phase string, transitions int) (at func(chain, done int)) {
	ranks := 1
	if e.comm != nil {
		ranks = e.comm.Size()
	}
	chains := (e.o.samples + e.drawing() - 1) / e.drawing()
	mine := (chains + ranks - 1) / ranks
	each, unit, total := transitions, "transitions/s", mine*transitions
	if transitions == 1 {
		each, unit, total = e.drawing(), trained.Speed(e.takes), min(mine*e.drawing(), e.o.samples)
	}
	return func(chain, done int) {
		e.progress(phase, unit, int64(min(total, chain*each+done*each/transitions)), int64(total), lessBySamples)
	}
}

// theirs are the pictures of --samples-from.
func (e *evaluation) theirs(ctx context.Context) (compare.Set, error) {
	split, err := splitOf(e.o.samplesFrom)
	if err != nil {
		return compare.Set{}, err
	}
	p, err := e.real(ctx, setSamples, e.o.samplesFrom, split, e.o.samples)
	return p.Set, err
}

// splitOf is the split of --samples-from that is judged.
func splitOf(name string) (string, error) {
	splits, err := dataset.Splits(name)
	switch {
	case err != nil:
		return "", err
	case slices.Contains(splits, "train"):
		return "train", nil
	case len(splits) == 1:
		return splits[0], nil
	}
	return "", fmt.Errorf("--samples-from %s has the splits %v: want one called train, or only one", name, splits)
}

// maker makes a set; its sentences are of what it lacks. A set without pictures is
// left out.
type maker func(ctx context.Context, reference pictures) (s compare.Set, note string, err error)

// makers are those of sets of pictures.
func (e *evaluation) makers() map[string]maker {
	few := func(p pictures) int { return min(p.n, e.o.samples) }
	return map[string]maker{
		setSamples: func(ctx context.Context, _ pictures) (s compare.Set, note string, err error) {
			if e.trained == nil {
				s, err = e.theirs(ctx)
				return s, "", err
			}
			if e.o.latents {
				return e.drawnGiven(ctx)
			}
			s, err = e.drawn(ctx)
			return s, "", err
		},
		setFloor: func(ctx context.Context, _ pictures) (compare.Set, string, error) {
			if e.o.split == e.trainSplit() {
				return compare.Set{}, fmt.Sprintf("there is no floor: --split %s is what is compared with", e.o.split), nil
			}
			p, err := e.real(ctx, setFloor, e.o.data, e.o.split, e.o.samples)
			return p.Set, "", err
		},
		setNoise: func(_ context.Context, p pictures) (compare.Set, string, error) {
			if size := sizeOf(e.takes); !size.Vector() {
				return compare.Set{Name: setNoise, X: control.Noise(few(p), size, e.o.seed)}, "", nil
			}
			return compare.Set{Name: setNoise, X: control.NormalPoints(p.X, few(p), e.takes.Shape.Len(), e.o.seed)}, "", nil
		},
		setBlurred: func(_ context.Context, p pictures) (compare.Set, string, error) {
			if sizeOf(e.takes).Vector() {
				return compare.Set{}, "", nil // there is no such thing
			}
			return compare.Set{Name: setBlurred, X: control.Blurred(p.first("", few(p)).X, sizeOf(e.takes))}, "", nil
		},
		setOneClass: func(_ context.Context, p pictures) (compare.Set, string, error) {
			if slices.Max(p.labels) == slices.Min(p.labels) {
				return compare.Set{}, fmt.Sprintf("there is no set of one class: %s has no classes", e.o.data), nil
			}
			chosen, repeated := control.OneClass(p.labels, few(p), e.o.seed)
			size := e.takes.Shape.Len()
			s := compare.Set{Name: setOneClass, X: make([]float32, 0, len(chosen)*size)}
			for _, i := range chosen {
				s.X = append(s.X, p.X[i*size:(i+1)*size]...)
			}
			note := ""
			if repeated {
				note = fmt.Sprintf("one class: it has fewer %s, which are repeated", trained.Noun(e.takes))
			}
			return s, note, nil
		},
		setShuffled: func(_ context.Context, p pictures) (compare.Set, string, error) {
			size, x := sizeOf(e.takes), p.first("", few(p)).X
			switch {
			case !size.Vector():
				return compare.Set{Name: setShuffled, X: control.Shuffled(x, size, e.o.seed)}, "", nil
			case size.Len() == 1:
				return compare.Set{}, "", nil // it would be the same points
			}
			return compare.Set{Name: setShuffled, X: control.ShuffledColumns(x, size.Len(), e.o.seed)}, "", nil
		},
		setCopies: func(_ context.Context, p pictures) (compare.Set, string, error) {
			return p.first(setCopies, few(p)), "", nil
		},
	}
}
