// Package job is what the programs of trainer have in common: what a run
// computes (Settings), the group of ranks it runs on (World), the device
// (OpenBackend), and a trained model read back from a run directory (Model).
//
// It is part of the mains, which are the one place where the rooms meet: it
// asks launch/rendezvous for this process's rank, makes a collective.Comm of
// it and opens the data.
package job

// Exit codes of every program (design.md §4).
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	// ExitRequeue means stopped cleanly before the end: start again with
	// --resume (EX_TEMPFAIL).
	ExitRequeue = 75
)
