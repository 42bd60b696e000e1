// Command mkshards writes data sets as shards, checks them and describes them.
// See mkshards --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/data/importer"
	"ebtrain/launch/cliflag"
)

// memory is what the heap is kept to, garbage included: pictures in work, and
// shards that fill up. A GOMEMLIMIT of the user's counts instead.
const memory = importer.MemoryLimit + 512<<20

func main() {
	if debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(memory)
	}
	ctx, end := cliflag.UntilSignal(context.Background(), "nothing was written")
	err := end(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
	os.Exit(cliflag.Exit("mkshards", err, os.Stderr))
}

const help = `mkshards writes a data set as shards, the format that train reads.

  mkshards celeba  --src img_align_celeba.zip --crop 160 --size 32 \
      --out shards/celeba32
  mkshards cifar10 --src cifar-10-batches-bin --out shards/cifar10
  mkshards mnist   --src mnist --pad 2 --out shards/mnist
  mkshards frey    --src frey_rawface.mat --out shards/frey
  mkshards svhn    --src svhn --out shards/svhn
  mkshards wds     --src tars --size 64 --out shards/mine
  mkshards npy     --src x.npy --labels y.npy --out shards/mine
  mkshards folder  --src pictures --size 64 --test-percent 10 --out shards/mine
  mkshards text    --src sentences.txt --val 500 --test 500 --out shards/text
  mkshards table   --src measured.csv --test-percent 10 --out shards/mine
  mkshards synth   --size 32 --out shards/synth
  mkshards checkerboard --cols 2 --out shards/checkerboard
  mkshards gauss   --modes 8 --sd 0.1 --out shards/ring

With pictures of your own, in a folder or a zip, mkshards folder is all it
takes, and in arrays of NumPy's mkshards npy; with vectors of your own, in CSV
or arrays, mkshards table. What the others read must be downloaded first;
mkshards celeba --help, cifar10 --help, mnist --help, frey --help and svhn
--help say where it is. mkshards synth, checkerboard and gauss need nothing, and
train takes these names as --data, too.

  mkshards info   shards/mnist     what a data set is
  mkshards verify shards/mnist     reads every byte and names what is damaged

mkshards <command> --help lists the settings of a command, mkshards --version
says what it was built of. A data set is written whole or not at all; nothing is
replaced without --force.
`

// run does what args ask for.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return cliflag.Usage("no command given")
	}
	if len(args) > 1 && args[0] == "help" && !strings.HasPrefix(args[1], "-") { // mkshards help folder
		args = []string{args[1], "--help"}
	}
	switch name := args[0]; name {
	case "help", "--help", "-help", "-h":
		_, err := io.WriteString(stdout, help)
		return err
	case "--version", "-version", "version":
		_, err := fmt.Fprintln(stdout, cliflag.Version("mkshards"))
		return err
	case "info":
		return cliflag.Within(name, runInfo(args[1:], stdout))
	case "verify":
		return cliflag.Within(name, runVerify(ctx, args[1:], stdout, stderr))
	default:
		for _, c := range commands() {
			if c.name == name {
				return cliflag.Within(name, c.run(ctx, args[1:], stdout, stderr))
			}
		}
		if strings.HasPrefix(name, "-") {
			return cliflag.Usage("%s: the command comes first, as in mkshards folder --src pictures --out shards/mine", name)
		}
		return cliflag.Usage("unknown command %q: %s", name, cliflag.OneOf(name, commandNames()))
	}
}

// commandNames is what mkshards can be asked for.
func commandNames() []string {
	names := []string{"info", "verify"}
	for _, c := range commands() {
		names = append(names, c.name)
	}
	return names
}

// groups are the flags of all commands as --help shows them.
var groups = []cliflag.Group{
	{Title: "The originals", Flags: []string{"src", "labels", "partition", "delimiter", "header", "test-percent", "val-percent", "limit", "on-bad", "seed", "train", "val", "test"}},
	{Title: "The density", Flags: []string{"cols", "dim", "modes", "radius", "sd"}},
	{Title: "The samples", Flags: []string{"columns", "leave-out", "label-column", "standardize", "like", "crop", "size", "pad", "channels", "lowercase", "split-punctuation", "max-length", "buckets"}},
	{Title: "The vocabulary", Flags: []string{"min-count", "max-words", "vocabulary"}},
	{Title: "The data set", Flags: []string{"out", "force", "workers"}},
	{Title: "Help", Flags: []string{"help", "version"}},
}

// parse reads args into fs; true means that help was asked for and written.
func parse(fs *pflag.FlagSet, text string, args []string, stdout io.Writer) (bool, error) {
	p := cliflag.Program{Name: "mkshards " + fs.Name(), About: text, Groups: groups, Args: "DIR"}
	err := p.Parse(fs, args, stdout)
	if errors.Is(err, cliflag.ErrHelp) {
		return true, nil
	}
	if _, usage := errors.AsType[*cliflag.UsageError](err); usage {
		return false, cliflag.Usage("%s: %w", fs.Name(), err)
	}
	return false, err // help was asked for, and cannot be written
}
