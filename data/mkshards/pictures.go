package main

import (
	"context"

	"github.com/spf13/pflag"

	"ebtrain/data/importer"
	"ebtrain/launch/cliflag"
)

// pictures are the commands whose originals are pictures.
func pictures() []command {
	return []command{celeba(), cifar10(), mnist(), frey(), svhn(), webDataset(), arrays(), folder()}
}

// ofOne opens originals of which --src names one.
func ofOne(open func(ctx context.Context, s *settings, src string) (*importer.Set, error)) func(context.Context, *settings) (*importer.Set, error) {
	return func(ctx context.Context, s *settings) (*importer.Set, error) {
		if len(s.src) != 1 {
			return nil, cliflag.Usage("%d sources, expected one --src", len(s.src))
		}
		return open(ctx, s, s.src[0])
	}
}

func celeba() command {
	return command{
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
		open: ofOne(func(ctx context.Context, s *settings, src string) (*importer.Set, error) {
			return importer.CelebA(ctx, src, s.partition, s.geometry)
		}),
	}
}

func cifar10() command {
	return command{
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
	}
}

func mnist() command {
	return command{
		name: "mnist", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
		usual: defaults{channels: 1},
		text: `mkshards mnist writes MNIST, or any set in its format with labels from 0 to 9,
from the directory of its four files train-images-idx3-ubyte.gz,
train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and
t10k-labels-idx1-ubyte.gz, gzipped or not.

The digits are grey and have 28×28 pixels, and networks take 32×32 and more:
--pad 2 adds a margin, --size 32 enlarges the digits instead.

  mkshards mnist --src mnist --pad 2 --out shards/mnist

It comes from http://yann.lecun.com/exdb/mnist/ or, where that refuses, from
https://ossci-datasets.s3.amazonaws.com/mnist/: the four .gz files, 12 MB.`,
		open: ofOne(func(ctx context.Context, s *settings, src string) (*importer.Set, error) {
			return importer.MNIST(ctx, src, s.geometry)
		}),
	}
}

func frey() command {
	return command{
		name: "frey", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
		usual: defaults{channels: 1},
		text: `mkshards frey writes the Frey faces, 1,965 frames of a film in their order: the
first 1,400 are the split train, the next 300 val, the last 265 test. They are
grey and not square: 28 rows of 20 pixels.

  mkshards frey --src frey_rawface.mat --out shards/frey

It comes from https://cs.nyu.edu/~roweis/data.html: frey_rawface.mat, 1.1 MB, a
MAT-file of level 5. --src is the file or its directory.`,
		open: ofOne(func(ctx context.Context, s *settings, src string) (*importer.Set, error) {
			return importer.Frey(ctx, src, s.geometry)
		}),
	}
}

func svhn() command {
	return command{
		name: "svhn", flags: []string{"src", "crop", "pad", "size", "channels"}, need: []string{"src", "out"},
		text: `mkshards svhn writes the cropped digits of Street View House Numbers, 32×32 in
colour, from the directory of train_32x32.mat and test_32x32.mat; where
extra_32x32.mat is there too, it becomes the split extra. --src may be one file.

  mkshards svhn --src svhn --out shards/svhn

They come from http://ufldl.stanford.edu/housenumbers/ ("Format 2"): 182, 64
and 1,330 MB. They are for non-commercial use.`,
		open: ofOne(func(ctx context.Context, s *settings, src string) (*importer.Set, error) {
			return importer.SVHN(ctx, src, s.geometry)
		}),
	}
}

func webDataset() command {
	return command{
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
	}
}

func arrays() command {
	return command{
		name: "npy", flags: []string{"src", "crop", "pad", "size"}, need: []string{"src", "out"},
		own: func(s *settings, fs *pflag.FlagSet) {
			fs.Lookup("src").Usage = "an array of pictures: a .npy file"
			fs.StringArrayVar(&s.labels, "labels", nil, "the classes of the pictures in an array: a .npy file, one for each --src")
			fs.IntVar(&s.channels, "channels", 0, "3 for RGB, 1 for grey, 0 for what the arrays have")
		},
		text: `mkshards npy writes pictures from arrays of NumPy's, .npy files of bytes: grey
ones as (N, H, W), grey or RGB as (N, H, W, C) or (N, C, H, W). --src may be given
several times; files with "test" or "val" in the name are that split, all others
train. --labels are whole numbers from 0, one array for each --src, in the same
order, or none at all. An .npz is a zip of such files: unzip it first.

  mkshards npy --src x_train.npy --labels y_train.npy \
      --src x_test.npy --labels y_test.npy --out shards/mine

Values from 0 to 1 are saved as bytes with
numpy.save("x.npy", numpy.uint8(numpy.rint(255 * x))).`,
		open: func(ctx context.Context, s *settings) (*importer.Set, error) {
			return importer.Arrays(ctx, s.src, s.labels, s.geometry)
		},
	}
}

func folder() command {
	return command{
		name: "folder", flags: []string{"src", "crop", "pad", "size", "channels", "test-percent"}, need: []string{"src", "out"},
		text: `mkshards folder writes any tree of JPEG and PNG pictures, a directory or a zip.
If the top folders are all called train, val or test, they are the splits, and a
picture beside them stops the import. The class of a picture is the first folder
below that. A folder that all pictures lie in, as zips have one, is passed over.

Links to folders are followed; hidden files and what is no regular file are left
alone and counted. How a camera was held (EXIF) is not looked at.

  mkshards folder --src pictures --size 64 --test-percent 10 --out shards/mine`,
		open: ofOne(func(ctx context.Context, s *settings, src string) (*importer.Set, error) {
			return importer.Folder(ctx, src, s.geometry, s.testPercent)
		}),
	}
}
