package bias

import (
	"context"
	"errors"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bism"
	"ebtrain/trainer/model/nn"
)

// study is a bi-level model at its initial θ, on one batch with one set of draws:
// its lower level is one function of φ, which plain steps descend.
type study struct {
	cfg     bism.Config // LowerSteps and Unroll are set for each program
	backend exec.Backend
	images  []float32 // (batch, C, H, W)
	batch   int
	seed    uint64

	start map[string]*exec.Tensor // the weights as they are drawn, F32
	theta []string                // those of the upper level
	phi   []string                // those of the lower one
}

// newStudy draws the variables.
func newStudy(cfg bism.Config, backend exec.Backend, images []float32, batch int, seed uint64) (*study, error) {
	cfg.SameNoise, cfg.Inner, cfg.LowerSteps, cfg.Unroll = true, bism.SGD, 1, 0
	s := &study{cfg: cfg, backend: backend, images: images, batch: batch, seed: seed, start: map[string]*exec.Tensor{}}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	model := cfg.Model().(algo.Bilevel) //nolint:errcheck // BiSM is
	g, specs, err := model.Hypergradient(algo.HyperOptions{World: 1, Batch: batch, DType: graph.F32})
	if err != nil {
		return nil, err
	}
	upper := map[string]bool{}
	for _, out := range g.Outputs() {
		upper[out.Name] = true
	}
	for _, v := range specs {
		switch {
		case v.Role != nn.Weight:
			continue
		case upper[algo.GradientOf(v.Name)]:
			s.theta = append(s.theta, v.Name)
		default:
			s.phi = append(s.phi, v.Name)
		}
		s.start[v.Name] = v.Value(seed)
	}
	if len(s.theta) == 0 || len(s.phi) == 0 {
		return nil, fmt.Errorf("bias: %d variables of the upper level and %d of the lower one: want some of both", len(s.theta), len(s.phi))
	}
	return s, nil
}

// point is a value of φ.
type point map[string]*exec.Tensor

// origin is φ as it is drawn.
func (s *study) origin() point { return s.only(s.start) }

func (s *study) only(all map[string]*exec.Tensor) point {
	p := point{}
	for _, name := range s.phi {
		p[name] = all[name]
	}
	return p
}

// stride is how many steps of the lower level one program takes.
const stride = 10

// descend takes n plain steps of the lower level from φ, with θ as it is drawn.
func (s *study) descend(ctx context.Context, from point, n int) (to point, err error) {
	to = from
	for n > 0 {
		k := min(n, stride)
		if n%stride != 0 {
			k = n % stride
		}
		if to, err = s.strides(ctx, to, k, n/k); err != nil {
			return nil, err
		}
		n -= k * (n / k)
	}
	return to, nil
}

// strides takes times·k steps: a training step of K = k, whose change of θ is
// undone, times times.
func (s *study) strides(ctx context.Context, from point, k, times int) (to point, err error) {
	cfg := s.cfg
	cfg.LowerSteps, cfg.Unroll = k, 0
	model := cfg.Model()
	g, specs, err := model.Step(1, s.batch)
	if err != nil {
		return nil, err
	}
	vars := s.backend.NewVars()
	if err := nn.Initialise(vars, specs, s.seed); err != nil {
		return nil, err
	}
	for name, v := range from {
		if err := vars.Set(name, v); err != nil {
			return nil, err
		}
	}
	p, err := s.backend.Compile(g, exec.Options{Name: "lower steps", Vars: vars})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s.feed(p, model)
	for range times {
		if err := exec.Run(ctx, p); err != nil {
			return nil, err
		}
		for _, name := range s.theta {
			if err := vars.Set(name, s.start[name]); err != nil {
				return nil, err
			}
		}
	}
	to = point{}
	for _, name := range s.phi {
		if to[name], err = vars.Get(name); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// feed fills the inputs: the batch, and the draws and rates of step 0.
func (s *study) feed(p exec.Program, model algo.Model) {
	in := p.Input(algo.InputImages)
	for i, v := range s.images {
		in.SetAt(i, float64(v))
	}
	copy(p.Input(algo.InputKey).I64(), []int64{int64(s.seed), 0, 0})
	if stop := p.Input(algo.InputStop); stop != nil {
		stop.SetAt(0, 0)
	}
	model.Feeder(p)(0, 0)
}

// hypergradient is dJ(θ, φᴺ(θ))/dθ with n unrolled steps from φ⁰, and J, both in
// float64.
func (s *study) hypergradient(ctx context.Context, phi point, n int) (grad []float64, upper float64, err error) {
	cfg := s.cfg
	cfg.LowerSteps, cfg.Unroll = 0, n
	model := cfg.Model()
	g, specs, err := model.(algo.Bilevel).Hypergradient(algo.HyperOptions{World: 1, Batch: s.batch, DType: graph.F64})
	if err != nil {
		return nil, 0, err
	}
	vars := s.backend.NewVars()
	for _, name := range s.theta {
		if err := vars.Set(name, wide(s.start[name])); err != nil {
			return nil, 0, err
		}
	}
	for name, v := range phi {
		if err := vars.Set(name, wide(v)); err != nil {
			return nil, 0, err
		}
	}
	if err := nn.Initialise(vars, specs, s.seed); err != nil {
		return nil, 0, err
	}
	p, err := s.backend.Compile(g, exec.Options{Name: "hypergradient", Vars: vars})
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	s.feed(p, model)
	if err := exec.Run(ctx, p); err != nil {
		return nil, 0, err
	}
	for _, name := range s.theta {
		grad = append(grad, p.Output(algo.GradientOf(name)).F64()...)
	}
	return grad, p.Output(algo.OutputUpper).Scalar(), nil
}

// wide is t in float64.
func wide(t *exec.Tensor) *exec.Tensor {
	w := exec.NewTensor(graph.Type{DType: graph.F64, Shape: t.Type.Shape})
	for i, v := range t.F32() {
		w.SetAt(i, float64(v))
	}
	return w
}
