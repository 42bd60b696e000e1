package loop

import (
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Algorithm is what the loop asks of a training algorithm. Its graphs take the
// inputs named below, besides those that Feeder names.
type Algorithm interface {
	// Step builds one training step for a rank that sees batch samples of the
	// world·batch in the global batch, and lists the variables of the model.
	Step(world, batch int) (*graph.Graph, []nn.Variable, error)
	// Report names the entries of the step's output OutputReport, a vector of
	// F32. All ranks get the same numbers. Exactly one is ReportStop.
	Report() []string
	// Feeder finds the algorithm's own inputs of p. What it returns fills them
	// for a step, with pure functions of the step and the epoch, both from 0, and
	// allocates nothing.
	Feeder(p exec.Program) func(step int64, epoch int)
	// Sample builds batch samples, named by InputKey, as output OutputSamples.
	Sample(mode nn.Mode, batch int) (*graph.Graph, error)
}

// Names of inputs and outputs that all algorithms share.
const (
	InputImages   = "images" // F32 (batch, C, H, W) in [−1, 1]
	InputKey      = "key"    // graph.KeyType: seed, step, first sample of this rank
	InputStop     = "stop"   // F32 scalar: 1 asks all ranks to stop after this step
	OutputReport  = "report"
	OutputSamples = "samples"
	ReportStop    = "stop" // the mean of InputStop over ranks
)

// fill copies vals into the input name of p, if the program has it.
func fill(p exec.Program, name string, vals ...int64) {
	if t := p.Input(name); t != nil {
		copy(t.I64(), vals)
	}
}
