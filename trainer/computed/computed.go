// Package computed is what a command line says about how steps are computed, whatever
// they train. The programs that compute them share it, so that the same flags mean the
// same to all.
//
// It is a part of the mains. Nothing here keeps state.
package computed

import (
	"errors"

	"github.com/spf13/pflag"

	"ebtrain/trainer/device"
)

// Flags are those of train, bench and stepbench.
type Flags struct {
	Device       string // one of device.Names
	Precision    string // one of device.Precisions
	Graph        string // one of device.Graphs
	Threads      int    // of each rank; 0 is device.Threads' choice
	Remat        bool
	ShardMoments bool
}

// Define adds the flags to fs.
func (f *Flags) Define(fs *pflag.FlagSet) {
	fs.StringVar(&f.Device, "device", device.Auto, "where to compute: "+device.Names)
	fs.StringVar(&f.Precision, "precision", device.F32, "type in which convolutions multiply: f32, or bf16, faster where the processor has it, or tf32, which GPUs have (weights, sums, statistics and losses stay float32)")
	fs.StringVar(&f.Graph, "cuda-graph", device.Auto, "on GPUs: capture a step once and replay it as one graph (the same bits, less time): auto, where all ranks can, on or off")
	fs.IntVar(&f.Threads, "threads", 0, "threads per rank; 0 is OMP_NUM_THREADS or, without it, the cores that the rank may use, shared with the ranks that may use them too")
	fs.BoolVar(&f.Remat, "remat", false, "use less memory: compute what costs little again in the backward pass instead of keeping it (the same numbers, more time)")
	fs.BoolVar(&f.ShardMoments, "shard-optimizer", false, "each rank keeps a part of the optimisers' state and moves that part of the weights: the same losses and weights, less memory, less work that all ranks repeat (checkpoints stay whole)")
}

// Check reports values that no machine can have.
func (f *Flags) Check() error {
	return errors.Join(device.Check(f.Device, f.Precision, f.Threads), device.CheckGraph(f.Device, f.Graph))
}
