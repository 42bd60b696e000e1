package main

import (
	"context"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/density"
	"ebtrain/data/importer"
	"ebtrain/data/synth"
	"ebtrain/launch/cliflag"
)

// points are the settings of the sets of points.
type points struct {
	board density.Checkerboard
	gauss density.Gauss
}

// flags defines those settings; their names are those of --data of train.
func (p *points) flags(fs *pflag.FlagSet) {
	usual := density.UsualGauss()
	fs.IntVar(&p.board.Cols, "cols", 2, "columns and rows of the board")
	fs.IntVar(&p.gauss.D, "dim", usual.D, "coordinates of a point")
	fs.IntVar(&p.gauss.Modes, "modes", usual.Modes, "Gaussians, their means on a circle in the first two coordinates; one alone lies in the origin")
	fs.Float64Var(&p.gauss.Radius, "radius", usual.Radius, "radius of that circle")
	fs.Float64Var(&p.gauss.SD, "sd", usual.SD, "standard deviation of each Gaussian, in each coordinate")
}

// ofPoints are the splits' usual sizes.
var ofPoints = defaults{train: density.Train, val: density.Val, test: density.Test}

// generated are the data sets that need no originals.
func generated() []command {
	return []command{
		{
			name: "checkerboard", flags: []string{"cols", "seed", "train", "val", "test"}, need: []string{"out"}, usual: ofPoints,
			text: `mkshards checkerboard writes points of the plane, drawn uniformly from every
other cell of a board over the unit square: with two columns the cells
[0, 1/2]² and [1/2, 1]². They are samples of 1×1×2 values, F32. train --data
checkerboard:cols=2,seed=0 uses the same points without any files. A split of 0
samples is left out.

  mkshards checkerboard --cols 2 --out shards/checkerboard`,
			open: func(_ context.Context, s *settings) (*importer.Set, error) {
				return s.density("checkerboard", s.points.board)
			},
		},
		{
			name: "gauss", flags: []string{"dim", "modes", "radius", "sd", "seed", "train", "val", "test"}, need: []string{"out"}, usual: ofPoints,
			text: `mkshards gauss writes points drawn from a mixture of Gaussians, all as likely
and as wide, their means evenly on a circle around the origin. With --modes 1 it
is one Gaussian in the origin. The points are samples of 1×1×DIM values, F32.
train --data gauss:modes=8,radius=1,sd=0.1 uses the same points without any
files. A split of 0 samples is left out.

  mkshards gauss --modes 8 --sd 0.1 --out shards/ring`,
			open: func(_ context.Context, s *settings) (*importer.Set, error) { return s.density("gauss", s.points.gauss) },
		},
		{
			name: "synth", flags: []string{"size", "seed", "train", "val", "test"}, need: []string{"out"},
			text: `mkshards synth writes the built-in pictures, coloured figures drawn from a seed.
train --data synth uses them without any files. A split of 0 samples is left
out.

  mkshards synth --size 32 --out shards/synth`,
			open: func(_ context.Context, s *settings) (*importer.Set, error) {
				c := synth.Config{Size: s.geometry.Size.H, Cols: s.geometry.Size.W, Seed: s.seed, Train: s.train, Val: s.val, Test: s.test}
				if err := c.Validate(); err != nil {
					return nil, cliflag.Usage("synth: --%w", err)
				}
				return s.copied(synth.Splits(), func(split string) (data.Source, error) { return synth.Open(c, split) })
			},
		},
	}
}

// density are points drawn from d, for the command of that name.
func (s *settings) density(name string, d density.Density) (*importer.Set, error) {
	if err := d.Validate(); err != nil {
		return nil, cliflag.Usage("%s: --%w", name, err)
	}
	c := density.Config{Density: d, Seed: s.seed, Train: s.train, Val: s.val, Test: s.test}
	return s.copied(density.Splits(), func(split string) (data.Source, error) { return density.Open(c, split) })
}

// copied are those of the splits that are to have samples.
func (s *settings) copied(splits []string, open func(split string) (data.Source, error)) (*importer.Set, error) {
	samples := map[string]int64{"train": s.train, "val": s.val, "test": s.test}
	var sources []importer.Named
	for _, split := range splits {
		if samples[split] == 0 {
			continue
		}
		src, err := open(split)
		if err != nil {
			return nil, err
		}
		sources = append(sources, importer.Named{Split: split, Source: src})
	}
	if len(sources) == 0 {
		return nil, cliflag.Usage("--train, --val and --test are all 0: want samples in one of them")
	}
	return importer.Copy(sources), nil
}
