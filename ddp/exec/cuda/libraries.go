package cuda

import (
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/exec/plan"
)

// libraries do convolutions and products.
type libraries struct{}

func openLibraries(dev *driver.Device, plain bool, say func(string)) (*libraries, error) {
	return &libraries{}, nil
}

func (l *libraries) String() string { return "plain kernels" }
func (l *libraries) Close() error   { return nil }

// chosen is how a library does a step.
type chosen struct {
	linalg.Candidate
}

// choose says by step how libraries do it, nil where they do not.
func (l *libraries) choose(p *program, o exec.Options) ([]*chosen, error) {
	return make([]*chosen, len(p.plan.Steps)), nil
}

// heavy is the work of a step that a library does.
func (p *program) heavy(s *plan.Step, c *chosen) work { return nil }
