// Command ddplaunch starts one process per rank on this node, tells each its
// rank, carries their output, and ends them all when one fails:
//
//	ddplaunch -nproc 8 train --net resnet128 --batch 40 --data shards/celeba128 --out runs/a
//
// Everything after the program's name is the program's. See --help.
package main

import (
	"context"
	"errors"
	"os"
	"syscall"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/launcher"
	"ebtrain/launch/outlet"
	"ebtrain/launch/supervise"
)

func main() {
	supervise.Guard()
	launcher.Main("ddplaunch", func(ctx context.Context, stdout, stderr *outlet.Writer) error {
		return run(ctx, os.Args[1:], stdout, stderr)
	})
}

// helped waits until help is written, which is queued, and says if it cannot be. Who reads no
// more of it has read enough.
func helped(stdout *outlet.Writer) error {
	if err := stdout.Flush(); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	return cliflag.ErrHelp
}

// run does what args say and returns nil, a launcher.Exit, or what went wrong.
func run(ctx context.Context, args []string, stdout, stderr *outlet.Writer) error {
	o, err := parse(args, os.Environ(), stdout)
	if _, mistake := errors.AsType[*cliflag.UsageError](err); mistake {
		err = cliflag.Show("ddplaunch", err, stderr) // others may be long in coming
		launcher.Absent(ctx, o, os.Environ(), err)
	}
	if errors.Is(err, cliflag.ErrHelp) {
		return helped(stdout)
	}
	if err != nil {
		return err
	}
	return launcher.Run(ctx, o, os.Environ(), stdout, stderr)
}
