package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/importer"
	"ebtrain/data/shard"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/progressbar"
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
	geometry    importer.Geometry // of crop, size and channels
	run         importer.Options
}

func commands() []command {
	return append([]command{
		{
			name: "celeba", flags: []string{"src", "partition", "crop", "pad", "size", "channels"}, need: []string{"src", "crop", "out"},
			text: `mkshards celeba writes CelebA, all or some of its aligned 178×218 JPEGs, from
the zip or a folder. The splits are the official ones: by --partition if given
(list_eval_partition.txt), else by the pictures' numbers.

Papers crop differently, and a result means little without the crop: BiSM and
VaGES take the centre 140, BiDVL 160, SNGAN 178, the latent EBM prior none. The
crop is part of the data set's identity.

  mkshards celeba --src img_align_celeba.zip --crop 160 --size 32 \
      --partition list_eval_partition.txt --out shards/celeba32

It comes from https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html:
Img/img_align_celeba.zip, 1.4 GB, stays as it is, and Eval has the list. It is
for non-commercial research; its page has the terms.`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.CelebA(ctx, src, s.partition, s.geometry)
			},
		},
		{
			name: "cifar10", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
			text: `mkshards cifar10 writes CIFAR-10 from binary batches (data_batch_1.bin …,
test_batch.bin, of any number of records) or from WebDataset tars. --src is a
directory or a file and may be given several times; files with "test" in the
name are the split test, all others train.

  mkshards cifar10 --src cifar-10-batches-bin --out shards/cifar10

It comes from https://www.cs.toronto.edu/~kriz/cifar.html: "CIFAR-10 binary
version", cifar-10-binary.tar.gz, 162 MB. Unpack it.`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				return importer.CIFAR10(ctx, s.src, s.geometry)
			},
		},
		{
			name: "mnist", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
			usual: defaults{channels: 1},
			text: `mkshards mnist writes MNIST, or any set in its format, from the directory of
its four files train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz,
t10k-images-idx3-ubyte.gz and t10k-labels-idx1-ubyte.gz, gzipped or not.

The digits are grey and have 28×28 pixels, and networks take 32×32 and more:
--pad 2 adds a margin, --size 32 enlarges the digits instead.

  mkshards mnist --src mnist --pad 2 --out shards/mnist

It comes from http://yann.lecun.com/exdb/mnist/ or, where that refuses, from
https://ossci-datasets.s3.amazonaws.com/mnist/: the four .gz files, 12 MB.`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.MNIST(ctx, src, s.geometry)
			},
		},
		{
			name: "frey", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
			usual: defaults{channels: 1},
			text: `mkshards frey writes the Frey faces, 1,965 frames of a film in their order: the
first 1,400 are the split train, the next 300 val, the last 265 test. They are
grey and not square: 28 rows of 20 pixels.

  mkshards frey --src frey_rawface.mat --out shards/frey

It comes from https://cs.nyu.edu/~roweis/data.html: frey_rawface.mat, 1.1 MB, a
MAT-file of level 5. --src is the file or its directory.`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.Frey(ctx, src, s.geometry)
			},
		},
		{
			name: "svhn", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
			text: `mkshards svhn writes the cropped digits of Street View House Numbers, 32×32 in
colour, from the directory of train_32x32.mat and test_32x32.mat; where
extra_32x32.mat is there too, it becomes the split extra. --src may be one file.

  mkshards svhn --src svhn --out shards/svhn

They come from http://ufldl.stanford.edu/housenumbers/ ("Format 2"): 182, 64
and 1,330 MB. They are for non-commercial use.`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.SVHN(ctx, src, s.geometry)
			},
		},
		{
			name: "wds", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
			text: `mkshards wds writes WebDataset tars (.tar, .tar.gz, .tar.zst). A sample is the
files that share a name up to the first dot: a picture (.jpg, .jpeg, .png) and,
in all samples or none, a class number (.cls). --src is a directory or a file
and may be given several times; files with "test" or "val" in the name are that
split, all others train.

  mkshards wds --src tars --size 64 --out shards/mine`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				return importer.WebDataset(ctx, s.src, s.geometry)
			},
		},
		{
			name: "folder", flags: []string{"src", "crop", "pad", "size", "channels", "test-percent"}, need: []string{"src", "out"},
			text: `mkshards folder writes any tree of JPEG and PNG pictures, a directory or a zip.
If the top folders are all called train, val or test, they are the splits, and a
picture beside them stops the import. The class of a picture is the first folder
below that.

Links to folders are followed; hidden files and what is no regular file are left
alone and counted. How a camera was held (EXIF) is not looked at.

  mkshards folder --src pictures --size 64 --test-percent 10 --out shards/mine`,
			open: func(ctx context.Context, s *settings) (*importer.Set, error) {
				src, err := s.oneSource()
				if err != nil {
					return nil, err
				}
				return importer.Folder(ctx, src, s.geometry, s.testPercent)
			},
		},
		sentences(),
	}, generated()...)
}

// oneSource is --src where only one makes sense.
func (s *settings) oneSource() (string, error) {
	if len(s.src) != 1 {
		return "", cliflag.Usage("%d sources, expected one --src", len(s.src))
	}
	return s.src[0], nil
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
	return fs
}

// run imports what args name.
func (c command) run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var s settings
	fs := c.flagSet(&s)
	if helped, err := parse(fs, c.text, args, stdout); helped || err != nil {
		return err
	}
	if err := c.check(fs, &s); err != nil {
		return err
	}
	start := time.Now()
	x, err := c.write(ctx, &s, stderr)
	if err != nil {
		return err
	}
	if err := describe(stdout, s.run.Out, x); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "written in %.1f s\n", time.Since(start).Seconds())
	return err
}

// grace is how long an import that is to stop may take to tidy up.
const grace = 300 * time.Millisecond

// write writes the data set. When ctx ends it ends too: soon, in the middle of
// whatever does not come back, say a read from a server that is gone, if it
// must. Then the process is expected to end.
func (c command) write(ctx context.Context, s *settings, stderr io.Writer) (*shard.Index, error) {
	temporary := make(chan string, 1)
	s.run.Began = func(dir string) { temporary <- dir }
	type result struct {
		x   *shard.Index
		err error
	}
	done := make(chan result, 1)
	go func() {
		x, err := c.convert(ctx, s, stderr)
		done <- result{x, err}
	}()
	select {
	case r := <-done:
		return r.x, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-done:
		if r.err == nil { // it was just complete
			return r.x, nil
		}
		return nil, context.Cause(ctx)
	case <-time.After(grace):
	}
	select {
	case dir := <-temporary:
		return nil, errors.Join(context.Cause(ctx), removeSoon(dir))
	default:
		return nil, context.Cause(ctx)
	}
}

// removeSoon removes the folder of an import that does not end. What cannot be
// removed at once, the next import removes.
func removeSoon(dir string) error {
	done := make(chan error, 1)
	go func() {
		err := os.RemoveAll(dir)
		for range 3 { // something may just have been written
			if err != nil {
				err = os.RemoveAll(dir)
			}
		}
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(grace / 2):
		return fmt.Errorf("%s is still being written; the next import there removes it", dir)
	}
}

// convert opens the originals and writes the data set.
func (c command) convert(ctx context.Context, s *settings, stderr io.Writer) (x *shard.Index, err error) {
	set, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()
	for _, n := range set.Notes {
		if _, err := fmt.Fprintln(stderr, n); err != nil {
			return nil, err
		}
	}
	m := progressbar.NewPhases(stderr)
	defer m.End()
	s.run.Progress = func(split string, done, total int64) { m.Progress(split, c.unit(), done, total) }
	skipped := 0
	s.run.Bad = func(b shard.Skipped) {
		if skipped++; skipped <= maxNamed {
			m.Line(fmt.Sprintf("skipped %s: %s", b.Name, b.Why))
		}
	}
	x, err = importer.Run(ctx, set, s.run)
	if skipped > maxNamed {
		m.Line(fmt.Sprintf("skipped %d more", skipped-maxNamed))
	}
	return x, err
}

// unit is what is counted each second.
func (c command) unit() string {
	if c.name == sentences().name {
		return "lines/s"
	}
	return "images/s"
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
	if s.run.Limit < 0 || s.run.Workers < 0 {
		return cliflag.Usage("%s: --limit %d and --workers %d, expected 0 or more", c.name, s.run.Limit, s.run.Workers)
	}
	if s.testPercent < 0 || s.testPercent > 90 {
		return cliflag.Usage("%s: --test-percent %d, expected 0 to 90", c.name, s.testPercent)
	}
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
