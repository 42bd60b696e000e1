// Package task lets a program that somebody else starts once for each rank do without
// ddplaunch: each task becomes the launcher of one rank, which is the same program
// started again. So a rank's end is seen by its parent, as under ddplaunch, and named
// as well.
//
//	srun -n8 --mpi=pmi2 train ...
//	mpiexec -n 8 train ...                             (Hydra, of MPICH and others)
//	mpirun -n 8 --bind-to none -x EBTRAIN_KEY train ... (Open MPI)
//
// The package keeps no state.
package task

import (
	"context"
	"fmt"
	"os"
	"slices"

	"ebtrain/launch/env"
	"ebtrain/launch/launcher"
	"ebtrain/launch/outlet"
	"ebtrain/launch/supervise"
)

// Lead must be the first call of the main function of the program called name. It
// returns, having done nothing, unless this process is one of several tasks of a
// step, which srun, mpirun or mpiexec has started, and no rank yet. Then it starts the rank and looks after it, and ends
// the process with the code of the job.
func Lead(name string) {
	supervise.Guard()
	o, leads, err := options(name, os.Args[1:], os.Environ())
	if !leads {
		return
	}
	launcher.Main(name, func(ctx context.Context, stdout, stderr *outlet.Writer) error {
		if err != nil {
			return err
		}
		return launcher.Run(ctx, o, os.Environ(), stdout, stderr)
	})
}

// options are what this task is to do as a launcher; leads is false if it is to do
// nothing, also because the environment is wrong: the program says so better.
func options(name string, args, environ []string) (o launcher.Options, leads bool, err error) {
	w, err := env.Parse(environ)
	if err != nil || w.Size == 1 || !slices.Contains([]string{env.SourceSLURM, env.SourcePMI, env.SourceOMPI}, w.Source) {
		return o, false, nil //nolint:nilerr // the program says it better
	}
	step, in, err := env.FindStep(environ)
	if err != nil || !in {
		return o, false, nil //nolint:nilerr // as above
	}
	o = launcher.Defaults(name)
	if o.Program, err = os.Executable(); err != nil {
		return o, true, fmt.Errorf("where this program lies: %w", err)
	}
	o.Args, o.Nodes, o.Least = args, step.Tasks, step.Tasks
	o.Local, o.Locals = step.Local, step.Locals
	o.Place(step)
	return o, true, nil
}
