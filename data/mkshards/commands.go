package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/importer"
	"ebtrain/launch/cliflag"
)

// command is one kind of originals.
type command struct {
	name, text string
	// flags that the command has besides those of all.
	flags []string
	// own defines flags that no other command has; may be nil.
	own func(s *settings, fs *pflag.FlagSet)
	// need are the flags that must be given.
	need  []string
	usual defaults
	open  func(ctx context.Context, s *settings) (*importer.Set, error)
}

// defaults are those of flags that commands differ in; 0 is that of most.
type defaults struct {
	channels         int
	train, val, test int64
}

// settings are the values of all flags.
type settings struct {
	src         []string
	labels      []string
	partition   string
	crop        string
	pad         int
	size        string
	channels    int
	testPercent int
	seed        uint64
	train       int64
	val         int64
	test        int64
	onBad       string
	points      points
	text        text
	table       table
	geometry    importer.Geometry                     // of crop, size and channels
	progress    func(phase string, done, total int64) // of what is read before run
	run         importer.Options
}

func commands() []command {
	return slices.Concat(pictures(), []command{sentences(), tables()}, generated())
}

// flagSet defines the command's flags.
func (c command) flagSet(s *settings) *pflag.FlagSet {
	all := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	all.StringArrayVar(&s.src, "src", nil, "the originals: a file or a directory")
	all.StringVar(&s.partition, "partition", "", "list_eval_partition.txt; without it splits go by the pictures' numbers")
	all.StringVar(&s.crop, "crop", "none", "what is cut from the centre: the side of a square in pixels, rows x columns as in 178x140, or none")
	all.IntVar(&s.pad, "pad", 0, "black pixels added on each side, after --crop and before --size")
	all.StringVar(&s.size, "size", "0", "size of the samples in pixels: a side, or rows x columns as in 28x20 (antialiased bilinear resizing, what is left over is cut); 0 keeps it")
	all.IntVar(&s.channels, "channels", cmp.Or(c.usual.channels, 3), "3 for RGB, 1 for grey")
	all.IntVar(&s.testPercent, "test-percent", 0, "share of the pictures that becomes the split test, in percent")
	s.points.flags(all)
	all.Uint64Var(&s.seed, "seed", 0, "seed of the samples")
	all.Int64Var(&s.train, "train", cmp.Or(c.usual.train, 8192), "samples of the split train")
	all.Int64Var(&s.val, "val", cmp.Or(c.usual.val, 1024), "samples of the split val")
	all.Int64Var(&s.test, "test", cmp.Or(c.usual.test, 1024), "samples of the split test")
	fs := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	for _, name := range c.flags {
		fs.AddFlag(all.Lookup(name))
	}
	if c.own != nil {
		c.own(s, fs)
	}
	fs.StringVar(&s.run.Out, "out", "", "directory of the data set to be written")
	fs.BoolVar(&s.run.Force, "force", false, "replace the data set that is there")
	fs.StringVar(&s.onBad, "on-bad", "stop", "at a damaged original: stop, or skip it and count it")
	fs.Int64Var(&s.run.Limit, "limit", 0, "take only the first originals of each split; 0 takes all")
	fs.IntVar(&s.run.Workers, "workers", 0, "originals decoded at the same time; 0 means one per core; the result is the same")
	for _, name := range c.need {
		f := fs.Lookup(name)
		f.Usage, f.DefValue = f.Usage+" (required)", ""
	}
	return fs
}

// check reports flags that are missing or out of range.
func (c command) check(fs *pflag.FlagSet, s *settings) error {
	if fs.NArg() > 0 {
		return cliflag.Usage("%s: unexpected %q; every setting has a name, as in --src", c.name, fs.Arg(0))
	}
	var missing []string
	for _, name := range c.need {
		if f := fs.Lookup(name); !f.Changed || f.Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return cliflag.Usage("%s: %s must be given", c.name, strings.Join(missing, " and "))
	}
	if !slices.Contains([]string{"stop", "skip"}, s.onBad) {
		return cliflag.Usage("%s: --on-bad %q, expected stop or skip", c.name, s.onBad)
	}
	s.run.SkipBad = s.onBad == "skip"
	if s.run.Limit < 0 {
		return cliflag.Usage("%s: --limit %d, expected 0 or more", c.name, s.run.Limit)
	}
	if s.run.Workers < 0 || s.run.Workers > importer.MaxWorkers {
		return cliflag.Usage("%s: --workers %d, expected 1 to %d, or 0 for one per core", c.name, s.run.Workers, importer.MaxWorkers)
	}
	if s.testPercent < 0 || s.testPercent > 90 {
		return cliflag.Usage("%s: --test-percent %d, expected 0 to 90", c.name, s.testPercent)
	}
	if err := cmp.Or(c.checkCounts(fs), checkChosen(fs)); err != nil {
		return err
	}
	return c.checkGeometry(s)
}

// checkCounts reports a number of samples that no split has; 0 leaves the split out.
func (c command) checkCounts(fs *pflag.FlagSet) error {
	for _, name := range []string{"train", "val", "test"} {
		n, err := fs.GetInt64(name)
		if err != nil || n == 0 { // of text they are files, too
			continue
		}
		if err := data.CheckCount(name, n); err != nil {
			return cliflag.Usage("%s: --%w, or 0 for none", c.name, err)
		}
	}
	return nil
}

// checkGeometry sets how pictures are cut and scaled.
func (c command) checkGeometry(s *settings) error {
	if s.crop != "none" {
		var err error
		if s.geometry.Crop, err = data.ParseSize(s.crop); err != nil {
			return cliflag.Usage("%s: --crop %w, or none", c.name, err)
		}
		if s.geometry.Crop == (data.Size{}) {
			return cliflag.Usage("%s: --crop %q, expected at least one pixel, or none", c.name, s.crop)
		}
	}
	size, err := data.ParseSize(s.size)
	if err != nil {
		return cliflag.Usage("%s: --size %w", c.name, err)
	}
	s.geometry.Pad, s.geometry.Size, s.geometry.Channels = s.pad, size, s.channels
	if err := s.geometry.Validate(); err != nil {
		return cliflag.Usage("%s: %w", c.name, err)
	}
	return nil
}
