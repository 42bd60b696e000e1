package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/data/importer"
	"ebtrain/data/shard"
	"ebtrain/data/synth"
	"ebtrain/launch/progressbar"
)

// command is one kind of originals.
type command struct {
	name, text string
	// flags that the command has besides those of all.
	flags []string
	// need are the flags that must be given.
	need []string
	open func(s *settings) (*importer.Set, error)
}

// settings are the values of all flags.
type settings struct {
	src         []string
	partition   string
	crop        string
	size        int
	channels    int
	testPercent int
	seed        uint64
	train       int64
	val         int64
	test        int64
	onBad       string
	geometry    importer.Geometry // of crop, size and channels
	run         importer.Options
}

func commands() []command {
	return []command{
		{
			name: "celeba", flags: []string{"src", "partition", "crop", "size"}, need: []string{"src", "crop", "out"},
			text: `mkshards celeba writes CelebA, all or some of its aligned 178×218 JPEGs, from the
zip or a folder. The splits are the official ones: by --partition if given
(list_eval_partition.txt), else by the pictures' numbers.

Papers crop differently, and a result means little without the crop: BiSM and
VaGES take the centre 140, BiDVL 160, SNGAN 178, the latent EBM prior none. The
crop is part of the data set's identity.

  mkshards celeba --src img_align_celeba.zip --partition list_eval_partition.txt \
      --crop 160 --size 32 --out shards/celeba32`,
			open: func(s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.CelebA(src, s.partition, s.geometry)
			},
		},
		{
			name: "cifar10", flags: []string{"src"}, need: []string{"src", "out"},
			text: `mkshards cifar10 writes CIFAR-10 from binary batches (data_batch_1.bin …,
test_batch.bin, of any number of records) or from WebDataset tars. --src is a
directory or a file and may be given several times; files with "test" in the
name are the split test, all others train.

  mkshards cifar10 --src cifar-10-batches-bin --out shards/cifar10`,
			open: func(s *settings) (*importer.Set, error) { return importer.CIFAR10(s.src) },
		},
		{
			name: "mnist", flags: []string{"src"}, need: []string{"src", "out"},
			text: `mkshards mnist writes MNIST, or any set in its format, from the directory of its
four files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz,
t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, gzipped or not.

  mkshards mnist --src mnist --out shards/mnist`,
			open: func(s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.MNIST(src)
			},
		},
		{
			name: "wds", flags: []string{"src", "crop", "size", "channels"}, need: []string{"src", "out"},
			text: `mkshards wds writes WebDataset tars (.tar, .tar.gz, .tar.zst). A sample is the
files that share a name up to the first dot: a picture (.jpg, .jpeg, .png) and,
in all samples or none, a class number (.cls). --src is a directory or a file
and may be given several times; files with "test" or "val" in the name are that
split, all others train.

  mkshards wds --src tars --size 64 --out shards/mine`,
			open: func(s *settings) (*importer.Set, error) { return importer.WebDataset(s.src, s.geometry) },
		},
		{
			name: "folder", flags: []string{"src", "crop", "size", "channels", "test-percent"}, need: []string{"src", "out"},
			text: `mkshards folder writes any tree of JPEG and PNG pictures, a directory or a zip.
If the top folders are called train, val and test, they are the splits. The
class of a picture is the first folder below that.

  mkshards folder --src pictures --crop none --size 64 --test-percent 10 --out shards/mine`,
			open: func(s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.Folder(src, s.geometry, s.testPercent)
			},
		},
		{
			name: "synth", flags: []string{"size", "seed", "train", "val", "test"}, need: []string{"out"},
			text: `mkshards synth writes the built-in pictures, coloured figures drawn from a seed.
train --data synth uses them without any files. A split of 0 samples is left out.

  mkshards synth --size 32 --out shards/synth`,
			open: openSynth,
		},
	}
}

func openSynth(s *settings) (*importer.Set, error) {
	c := synth.Config{Size: s.size, Seed: s.seed, Train: s.train, Val: s.val, Test: s.test}
	samples := map[string]int64{"train": s.train, "val": s.val, "test": s.test}
	var sources []importer.Named
	for _, split := range synth.Splits() {
		if samples[split] == 0 {
			continue
		}
		src, err := synth.Open(c, split)
		if err != nil {
			return nil, err
		}
		sources = append(sources, importer.Named{Split: split, Source: src})
	}
	if len(sources) == 0 {
		return nil, usage("--train, --val and --test are all 0: want samples in one of them")
	}
	return importer.Copy(sources), nil
}

// oneSource is --src where only one makes sense.
func (s *settings) oneSource() (string, error) {
	if len(s.src) != 1 {
		return "", usage("%d sources, expected one --src", len(s.src))
	}
	return s.src[0], nil
}

// flagSet defines the command's flags.
func (c command) flagSet(s *settings) *pflag.FlagSet {
	all := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	all.StringArrayVar(&s.src, "src", nil, "the originals: a file or a directory")
	all.StringVar(&s.partition, "partition", "", "list_eval_partition.txt; without it splits go by the pictures' numbers")
	all.StringVar(&s.crop, "crop", "none", "side in pixels of the square cut from the centre, or none: the shorter side is resized, the longer one cut")
	all.IntVar(&s.size, "size", 0, "side of the samples in pixels (antialiased bilinear resizing); 0 keeps the size")
	all.IntVar(&s.channels, "channels", 3, "3 for RGB, 1 for grey")
	all.IntVar(&s.testPercent, "test-percent", 0, "share of the pictures that becomes the split test, in percent")
	all.Uint64Var(&s.seed, "seed", 0, "seed of the pictures")
	all.Int64Var(&s.train, "train", 8192, "samples of the split train")
	all.Int64Var(&s.val, "val", 1024, "samples of the split val")
	all.Int64Var(&s.test, "test", 1024, "samples of the split test")
	fs := pflag.NewFlagSet(c.name, pflag.ContinueOnError)
	for _, name := range c.flags {
		fs.AddFlag(all.Lookup(name))
	}
	fs.StringVar(&s.run.Out, "out", "", "directory of the data set to be written")
	fs.BoolVar(&s.run.Force, "force", false, "replace the data set that is there")
	fs.StringVar(&s.onBad, "on-bad", "stop", "at a damaged picture: stop, or skip it and count it")
	fs.Int64Var(&s.run.Limit, "limit", 0, "take only the first pictures of each split; 0 takes all")
	fs.IntVar(&s.run.Workers, "workers", 0, "pictures decoded at the same time; 0 means one per core; the result is the same")
	return fs
}

// run imports what args name.
func (c command) run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	var s settings
	fs := c.flagSet(&s)
	if helped, err := parse(fs, c.text, args, stdout); helped || err != nil {
		return err
	}
	if err := c.check(fs, &s); err != nil {
		return err
	}
	start := time.Now()
	set, err := c.open(&s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, n := range set.Notes {
		fmt.Fprintln(stderr, n)
	}
	m := progressbar.NewPhases(stderr)
	s.run.Progress = func(split string, done, total int64) { m.Progress(split, "pictures/s", done, total) }
	s.run.Bad = func(b shard.Skipped) { m.Line(fmt.Sprintf("skipped %s: %s", b.Name, b.Why)) }
	x, err := importer.Run(ctx, set, s.run)
	m.End()
	if err != nil {
		return err
	}
	if err := describe(stdout, s.run.Out, x); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "written in %.1f s\n", time.Since(start).Seconds())
	return err
}

// check reports flags that are missing or out of range.
func (c command) check(fs *pflag.FlagSet, s *settings) error {
	if fs.NArg() > 0 {
		return usage("%s: unexpected %q; every setting has a name, as in --src", c.name, fs.Arg(0))
	}
	var missing []string
	for _, name := range c.need {
		if f := fs.Lookup(name); !f.Changed || f.Value.String() == "" {
			missing = append(missing, "--"+name)
		}
	}
	if len(missing) > 0 {
		return usage("%s: %s must be given", c.name, strings.Join(missing, " and "))
	}
	if !slices.Contains([]string{"stop", "skip"}, s.onBad) {
		return usage("%s: --on-bad %q, expected stop or skip", c.name, s.onBad)
	}
	s.run.SkipBad = s.onBad == "skip"
	if s.run.Limit < 0 || s.run.Workers < 0 {
		return usage("%s: --limit %d and --workers %d, expected 0 or more", c.name, s.run.Limit, s.run.Workers)
	}
	if s.crop != "none" {
		n, err := strconv.Atoi(s.crop)
		if err != nil || n < 1 {
			return usage("%s: --crop %q, expected a side in pixels or none", c.name, s.crop)
		}
		s.geometry.Crop = n
	}
	s.geometry.Size, s.geometry.Channels = s.size, s.channels
	if err := s.geometry.Validate(); err != nil {
		return usage("%s: %w", c.name, err)
	}
	return nil
}
