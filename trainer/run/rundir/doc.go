// Package rundir is the directory of one training run (--out):
//
//	config.json     everything needed to run it again
//	metrics.jsonl   one line for each logged step
//	ckpt/           checkpoints (package ckpt)
//	samples/        grids of samples, PNG
//	events/         TensorBoard event files
//	rank-N.log      the log of rank N
//	profile-N.json  a trace of step N, if one was asked for
//	cuda-choices.json  what a GPU's libraries compute by, so that a resume has the same bits
//
// A cell of an experiment has cell.json, console.log and measured.json besides.
//
// Rank 0 holds a Dir, and one rank of each host that does not see rank 0's: Create
// for a new run, Open to go on with one. A Dir locks the directory (flock on .lock)
// until Close or the end of the process, so two runs never write in one. Other ranks and
// other programs use Layout for the names and ReadConfig and ReadMetrics to read.
//
// config.json is replaced as a whole, never changed in place. metrics.jsonl is
// only appended to, one write for each line, and cut back when a run resumes
// from an earlier step.
//
// A Dir and a Metrics belong to one goroutine.
package rundir

import (
	"fmt"
	"path/filepath"
)

// Layout is the path of a run directory; its methods name what is inside.
type Layout string

// Path is the directory itself.
func (l Layout) Path() string { return string(l) }

// ConfigFile is the path of config.json.
func (l Layout) ConfigFile() string { return filepath.Join(string(l), "config.json") }

// MetricsFile is the path of metrics.jsonl.
func (l Layout) MetricsFile() string { return filepath.Join(string(l), "metrics.jsonl") }

// Ckpt is the folder of the checkpoints.
func (l Layout) Ckpt() string { return filepath.Join(string(l), "ckpt") }

// Samples is the folder of the sample grids.
func (l Layout) Samples() string { return filepath.Join(string(l), "samples") }

// Events is the folder of the TensorBoard event files.
func (l Layout) Events() string { return filepath.Join(string(l), "events") }

// Log is the path of the log of a rank.
func (l Layout) Log(rank int) string {
	return filepath.Join(string(l), fmt.Sprintf("rank-%d.log", rank))
}

// Choices is the file of what a GPU's libraries do convolutions and products by, so
// that a run that goes on has the same bits.
func (l Layout) Choices() string { return filepath.Join(string(l), "cuda-choices.json") }

// Profile is the path of the trace of a step.
func (l Layout) Profile(step int64) string {
	return filepath.Join(string(l), fmt.Sprintf("profile-%08d.json", step))
}
