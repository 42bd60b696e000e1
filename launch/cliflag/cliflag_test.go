package cliflag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func flags() *pflag.FlagSet {
	fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "nproc" {
			return "nproc-per-node"
		}
		return pflag.NormalizedName(name)
	})
	fs.String("nproc-per-node", "1", "")
	fs.StringP("tee", "t", "", "")
	fs.String("t", "", "")
	fs.BoolP("verbose", "v", false, "")
	fs.Int("n", 0, "")
	fs.Float64("lr", 0, "")
	fs.String("log-dir", "", "")
	fs.Bool("run_fast", false, "")
	return fs
}

func TestNormalize(t *testing.T) {
	tests := []struct {
		name, in, want string
		interspersed   bool
	}{
		{"one dash, alias", "-nproc 2 train -nproc 3", "--nproc-per-node 2 train -nproc 3", false},
		{"two dashes, alias", "--nproc=2 train", "--nproc-per-node=2 train", false},
		{"underscores", "--nproc_per_node 2 --log_dir x p", "--nproc-per-node 2 --log-dir x p", false},
		{"one dash with underscores and value", "-nproc_per_node=4 p", "--nproc-per-node=4 p", false},
		{"declared with an underscore", "-run-fast --run_fast", "--run_fast --run_fast", true},
		{"value that looks like the program", "--log-dir train -v train -v", "--log-dir train -v train -v", false},
		{"value that looks like a flag", "-lr -1 --n -5", "--lr -1 --n -5", true},
		{"short flag kept", "-t 3 p -t 4", "-t 3 p -t 4", false},
		{"short with attached value", "-t3 p", "-t3 p", false},
		{"short group", "-vt 3 p", "-vt 3 p", false},
		{"a flag behind the value of a short group", "-vt 3 -lr 1 p", "-vt 3 --lr 1 p", false},
		{"short flags without values", "-v -n 5", "-v --n 5", true},
		{"one letter with two dashes is long", "--t=-n -n 3", "--t=-n --n 3", true},
		{"two dashes are no short flags", "--vt -n 5", "--vt --n 5", true},
		{"a letter that is not of ASCII", "-é -\u0080 -n 5", "-é -\u0080 --n 5", true},
		{"a last value that looks like a flag", "--log-dir -n", "--log-dir -n", true},
		{"long preferred to a group", "-tee 3 p", "--tee 3 p", false},
		{"one-letter long flag", "-n 64", "--n 64", true},
		{"bool takes no value", "-verbose train", "--verbose train", false},
		{"the program behind a bool", "-verbose train -n 3", "--verbose train -n 3", false},
		{"the program behind an attached value", "-lr=1 train -n 3", "--lr=1 train -n 3", false},
		{"the program behind a short with an attached value", "-t3 train -n 3", "-t3 train -n 3", false},
		{"an unknown letter takes no value", "-zt -n 5", "-zt --n 5", true},
		{"double dash ends", "-n 3 -- -nproc 2", "--n 3 -- -nproc 2", true},
		{"unknown untouched", "--nprocs 2 -zz p", "--nprocs 2 -zz p", true},
		{"interspersed goes on", "a -n 3 b -log_dir d", "a --n 3 b --log-dir d", true},
		{"lone dash is positional", "- -n 3", "- -n 3", false},
		{"value missing at the end", "-nproc", "--nproc-per-node", false},
		{"empty", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Normalize(flags(), strings.Fields(tt.in), tt.interspersed)
			if want := strings.Fields(tt.want); !slices.Equal(got, want) {
				t.Errorf("Normalize(%q) = %q, want %q", tt.in, got, want)
			}
		})
	}
}

func ExampleNormalize() {
	fs := pflag.NewFlagSet("ddplaunch", pflag.ContinueOnError)
	nproc := fs.Int("nproc", 1, "processes on this node")
	fs.SetInterspersed(false)
	args := []string{"-nproc", "2", "train", "-batch", "64"}
	if err := fs.Parse(Normalize(fs, args, false)); err != nil {
		fmt.Println(err)
	}
	fmt.Println(*nproc, fs.Args())
	// Output: 2 [train -batch 64]
}
