package main

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/trainer/algo"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/trained"
)

// latents are vectors of dim values each.
type latents struct {
	x   []float32 // (n, dim)
	dim int
}

func (l latents) row(i int) []float32 { return l.x[i*l.dim : (i+1)*l.dim] }

// below draws a sample with the latents of each picture, below it.
func (d *drawing) below(ctx context.Context) (out drawn, err error) {
	pictures, h, err := d.infer(ctx, d.o.n)
	if err != nil {
		return out, err
	}
	samples, err := d.given(ctx, h)
	if err != nil {
		return out, err
	}
	out.picture, err = picture.SideBySide(trained.Pix(pictures, d.o.n, d.takes), trained.Pix(samples, d.o.n, d.takes), d.o.scale)
	out.what = fmt.Sprintf("%d samples below the pictures of %s/%s whose latents they have,", d.o.n, d.o.given, d.o.split)
	return out, err
}

// rows draws, for each two pictures, samples whose latents go from those of the
// first to those of the second, between the two. All samples of a row have the same
// noise, so they differ by their latents alone.
func (d *drawing) rows(ctx context.Context) (out drawn, err error) {
	pictures, ends, err := d.infer(ctx, 2*d.o.n)
	if err != nil {
		return out, err
	}
	columns, err := d.columns(ctx, ends)
	if err != nil {
		return out, err
	}
	size, cols := d.takes.Shape.Len(), d.o.interpolate
	var all []float32
	for i := range d.o.n {
		all = append(all, pictures[2*i*size:(2*i+1)*size]...)
		for _, column := range columns {
			all = append(all, column[i*size:(i+1)*size]...)
		}
		all = append(all, pictures[(2*i+1)*size:(2*i+2)*size]...)
	}
	out.picture, err = picture.Rows(trained.Pix(all, d.o.n*(cols+2), d.takes), cols+2, d.o.scale)
	out.what = fmt.Sprintf("%d rows of %d samples between pictures of %s/%s,", d.o.n, cols, d.o.given, d.o.split)
	return out, err
}

// mirrored draws, for each picture, samples whose latents go from --mirror times its
// own to as many times their negative, beside it [VaGES, Fig. 6].
func (d *drawing) mirrored(ctx context.Context) (out drawn, err error) {
	pictures, h, err := d.infer(ctx, d.o.n)
	if err != nil {
		return out, err
	}
	columns, err := d.columns(ctx, opposite(h, float32(d.o.mirror)))
	if err != nil {
		return out, err
	}
	size, cols := d.takes.Shape.Len(), d.o.interpolate
	var all []float32
	for i := range d.o.n {
		all = append(all, pictures[i*size:(i+1)*size]...)
		for _, column := range columns {
			all = append(all, column[i*size:(i+1)*size]...)
		}
	}
	out.picture, err = picture.Rows(trained.Pix(all, d.o.n*(cols+1), d.takes), cols+1, d.o.scale)
	out.what = fmt.Sprintf("%d rows of %d samples from %v to %v times the latents of pictures of %s/%s,", d.o.n, cols, d.o.mirror, -d.o.mirror, d.o.given, d.o.split)
	return out, err
}

// opposite are, for each row of h, far times it and −far times it.
func opposite(h latents, far float32) latents {
	out := latents{dim: h.dim}
	for i := range len(h.x) / h.dim {
		for _, by := range []float32{far, -far} {
			for _, v := range h.row(i) {
				out.x = append(out.x, by*v)
			}
		}
	}
	return out
}

// columns are the samples at equal distances between each two rows of ends.
func (d *drawing) columns(ctx context.Context, ends latents) (columns [][]float32, err error) {
	n := d.o.interpolate
	columns = make([][]float32, n)
	for k := range columns {
		d.before, d.parts = k, n
		if columns[k], err = d.given(ctx, between(ends, k, n)); err != nil {
			return nil, err
		}
	}
	return columns, nil
}

// between are, for each two rows of ends, the kth of n points at equal distances on
// the line from the first to the second, both included.
func between(ends latents, k, n int) latents {
	out := latents{dim: ends.dim}
	t := float32(k) / float32(n-1)
	for i := 0; i < len(ends.x)/ends.dim; i += 2 {
		from, to := ends.row(i), ends.row(i+1)
		for j := range from {
			out.x = append(out.x, (1-t)*from[j]+t*to[j])
		}
	}
	return out
}

// infer are the first n pictures of --given and their posterior means.
func (d *drawing) infer(ctx context.Context, n int) (pictures []float32, h latents, err error) {
	encoder, ok := d.run.Model.(algo.Encoder)
	if _, draws := d.run.Model.(algo.Conditional); !ok || !draws {
		return nil, h, fmt.Errorf("the model of %s, of --algo %s, does not draw samples with given latents: leave --given out", d.o.run, d.run.Settings.Algo)
	}
	if pictures, err = d.run.First(ctx, d.o.given, d.o.split, n); err != nil {
		return nil, h, err
	}
	look := trained.NewLook(d.run, d.backend, "latents", encoder.Encode, d.o.seed)
	look.Smaller = "--n"
	defer func() { err = errors.Join(err, look.Close()) }()
	p, err := look.At(ctx, pictures, n, 0)
	if err != nil {
		return nil, h, err
	}
	code := p.Output(algo.OutputCode)
	return pictures, latents{append(h.x, code.F32()...), code.Type.Shape.At(1)}, nil
}

// given draws one sample with each of the latents.
func (d *drawing) given(ctx context.Context, h latents) ([]float32, error) {
	n := len(h.x) / h.dim
	plan, err := d.run.Model.(algo.Conditional).SampleGiven(n)
	if err != nil {
		return nil, err
	}
	x, err := d.run.Draw(ctx, d.backend, trained.Draw{Plan: plan, Seed: d.o.seed, Given: h.x, Smaller: "--n", Each: d.progress})
	if err != nil {
		return nil, err
	}
	d.tally.add(x, d.takes)
	return x.F32(), nil
}
