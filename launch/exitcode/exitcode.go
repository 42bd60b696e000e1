// Package exitcode is how the programs end: codes that a shell, SLURM and
// ddplaunch act on.
package exitcode

const (
	Done   = 0
	Failed = 1
	Usage  = 2 // a mistake on the command line; nothing was begun
	// Requeue means stopped cleanly before the end: start again with --resume
	// (EX_TEMPFAIL of sysexits.h).
	Requeue = 75
	// Signal and the signal's number is the code of a death by it.
	Signal = 128
)
