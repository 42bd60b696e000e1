package trained

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/device"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/loop"
)

// Modes are the values of --stats: whose statistics batch norm uses.
var Modes = map[string]nn.Mode{"batch": nn.BatchStats, "running": nn.Eval}

// Judged is what a model says of n images. It is valid until the next call.
type Judged struct {
	Recon  []float32 // (n, C, H, W): G(μ(v))
	Logit  []float32 // (n): ranks like the energy, without ties: before softplus, if the network has one
	Energy []float32 // (n)
}

// Jury runs a trained model on batches of any size.
type Jury struct {
	trained *Run
	backend exec.Backend
	mode    nn.Mode
	byBatch map[int]exec.Program
}

// NewJury makes a Jury whose batch norm works in mode.
func NewJury(t *Run, backend exec.Backend, mode nn.Mode) *Jury {
	return &Jury{trained: t, backend: backend, mode: mode, byBatch: map[int]exec.Program{}}
}

// Judge judges n images, x (n, C, H, W) in [−1, 1].
func (j *Jury) Judge(ctx context.Context, x []float32, n int) (Judged, error) {
	p, err := j.program(n)
	if err != nil {
		return Judged{}, err
	}
	in := p.Input(loop.InputImages).F32()
	if len(x) != len(in) {
		return Judged{}, fmt.Errorf("%d values are not %d images of the model's size (%d values)", len(x), n, len(in))
	}
	copy(in, x)
	if err := exec.Run(ctx, p); err != nil {
		return Judged{}, err
	}
	return Judged{p.Output(bidvl.OutputRecon).F32(), p.Output(bidvl.OutputLogit).F32(), p.Output(bidvl.OutputEnergy).F32()}, nil
}

func (j *Jury) program(n int) (exec.Program, error) {
	if p, ok := j.byBatch[n]; ok {
		return p, nil
	}
	g, err := j.trained.Model.Judge(j.mode, n)
	if err != nil {
		return nil, err
	}
	if err := device.CheckMemory(g, "--batch"); err != nil {
		return nil, err
	}
	p, err := j.backend.Compile(g, exec.Options{Name: "judge", Vars: j.trained.Vars})
	if err == nil {
		j.byBatch[n] = p
	}
	return p, err
}

// Close releases the programs.
func (j *Jury) Close() error {
	var errs []error
	for _, p := range j.byBatch {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// Samples generates n images (n, C, H, W) in (−1, 1), named by seed.
func Samples(ctx context.Context, t *Run, backend exec.Backend, mode nn.Mode, n int, seed uint64) (*exec.Tensor, error) {
	g, err := t.Model.Sample(mode, n)
	if err != nil {
		return nil, err
	}
	if err := device.CheckMemory(g, "number of pictures"); err != nil {
		return nil, err
	}
	p, err := backend.Compile(g, exec.Options{Name: "sample", Vars: t.Vars})
	if err != nil {
		return nil, err
	}
	copy(p.Input(loop.InputKey).I64(), []int64{int64(seed), 0, 0})
	if err := exec.Run(ctx, p); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	out := exec.NewTensor(p.Output(loop.OutputSamples).Type)
	copy(out.Bytes(), p.Output(loop.OutputSamples).Bytes())
	return out, p.Close()
}

// Sizes is the values of images (N, C, H, W) and their sizes.
func Sizes(t *exec.Tensor) (pix []float32, n, c, h, w int) {
	s := t.Type.Shape
	return t.F32(), s.At(0), s.At(1), s.At(2), s.At(3)
}
