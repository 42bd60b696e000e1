// Command collbench times collectives between the ranks of a launcher, or between
// processes that it starts itself, and checks their results while it does. It
// measures in between what the machine could do at best, and fits latency and
// bandwidth.
//
//	ddplaunch -nproc 2 collbench --max 64MB
//	collbench -nproc 2 --sizes 4K,256K,4M,64M
//
// See collbench --help for what it prints, and package cost for what it writes
// with --json.
package main

import (
	"context"
	"io"
	"os"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
	"ebtrain/launch/task"
)

func main() {
	task.Lead("collbench")
	ctx, end := cliflag.UntilSignal(context.Background(), unfinished)
	err := end(run(ctx, os.Args[1:], os.Environ(), os.Stdout))
	os.Exit(cliflag.Exit("collbench", err, os.Stderr))
}

// unfinished is what there is of the work when a signal ends it: rows are printed as they come.
const unfinished = "not all was measured"

// run is the command: it is one of the ranks, of a launcher or of its own, or it
// starts them.
func run(ctx context.Context, args, environ []string, stdout io.Writer) error {
	opt, err := parse(args, stdout)
	if err != nil {
		return err
	}
	if rank := os.Getenv(rankEnv); rank != "" {
		return runRank(ctx, opt, rank)
	}
	worker, err := env.Parse(environ)
	if err != nil {
		return err
	}
	switch {
	case worker.ControlFD >= 0 || worker.Size > 1:
		return join(ctx, opt, worker, environ, stdout)
	case opt.peers != "":
		return compare(ctx, opt, stdout)
	}
	return spawn(ctx, opt, args)
}
