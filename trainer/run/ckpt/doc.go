// Package ckpt writes and reads checkpoints that are complete or absent.
//
// A checkpoint is a folder "step-00000025" of safetensors files, one for each
// group of tensors (weights, optimizer, buffers, average), and state.json, which
// says where training stands and carries the SHA-256 of every file and of itself.
// FORMAT.md beside the code describes the bytes. Equal arguments give equal
// bytes.
//
// It is written under a hidden name in the same folder, every file and the
// folder are fsynced, the folder is renamed, and the parent is fsynced. A
// process that is killed, or a machine that loses power, at any moment leaves
// the checkpoint whole or not there; leftovers are hidden, never read, and
// removed by the next Write or Prune, as far as they can be.
//
// A folder of checkpoints has one writer at a time (Write, Prune: rank 0);
// any number of processes may read it. Read and ReadLatest trust nothing: sizes,
// checksums, names and shapes are checked.
package ckpt

import (
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
)

// Groups that a training run writes. Any other name of lower-case letters,
// digits, "_" and "-" that begins with a letter is allowed too.
const (
	Weights   = "weights"   // parameters
	Optimizer = "optimizer" // moments, step counts
	Buffers   = "buffers"   // running statistics, spectral-norm vectors
	Averages  = "average"   // moving averages of weights, by the names of these
)

// Named is a tensor with its name, for example "generator.0.weight".
type Named struct {
	Name   string
	Tensor *exec.Tensor
}

// DamagedError says that a checkpoint exists and cannot be used: a file is
// missing, torn, changed, or was made by another version of the format.
type DamagedError struct {
	File    string // path of the file that is wrong
	Problem error
}

func (e *DamagedError) Error() string {
	if errors.Is(e.Problem, errVersion) {
		return fmt.Sprintf("%s: %v", e.File, e.Problem)
	}
	return fmt.Sprintf("%s: %v: the checkpoint is damaged", e.File, e.Problem)
}

// errVersion says that a state.json is whole and not of this version.
var errVersion = errors.New("the checkpoint was written by another version of this program")

func (e *DamagedError) Unwrap() error { return e.Problem }
