package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ebtrain/collective"
	driver "ebtrain/collective/cuda"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/model/nn"
)

// workload is a training step of BiDVL on numbers that its names alone decide.
type workload struct {
	Net                  string
	Width, Latent, Batch int // 0: the paper's
	Fresh                bool
	Still                bool // weights hardly move: on noise the networks diverge after some 50 steps, and what is not finite is computed faster
	Shards               int  // virtual ones, as of --deterministic; 0: without
}

// still is the learning rate of weights that hardly move.
const still = 1e-9

func (w workload) String() string {
	return fmt.Sprintf("%s width %d batch %d", w.Net, w.Width, w.Batch)
}

// columns are the names of what its steps report.
func (w workload) columns() ([]string, error) {
	p, err := bidvl.PresetFor(w.Net)
	if err != nil {
		return nil, err
	}
	return algo.Names(p.Config.Report()), nil
}

// small is the step of the checks of numbers: every kind of layer, quick on a CPU.
var small = workload{Net: "conv32", Width: 8, Latent: 8, Batch: 8}

// session is a workload on a device.
type session struct {
	w     workload
	be    exec.Backend
	vars  exec.Vars
	step  exec.Program
	rank  int
	world int
	names []string
	feed  func(step int64, epoch int)
	trace func(exec.Event) // of the next run, nil if nobody asks
	cold  time.Duration    // compilation and the first three steps, in which kernels are loaded and the graph is made
}

// gpu opens a GPU that puts what it says into the log, too.
func gpu(c cuda.Config) (*cuda.Backend, error) {
	told := c.Say
	c.Say = func(s string) {
		fmt.Fprintln(os.Stderr, s) // a rank's results are on its output
		if told != nil {
			told(s)
		}
	}
	return cuda.New(c)
}

// multiplies is an error where a device does not multiply in bfloat16, and a check would.
func multiplies(d *driver.Device, t linalg.Types) error {
	if i := d.Info(); t.A == graph.BF16 && i.Major < 8 {
		return fmt.Errorf("%w: %v", cuda.ErrNoBF16, i)
	}
	return nil
}

func openCPU() (exec.Backend, error) { return cpu.New(cpu.Config{}) }

// openGPU opens a GPU for steps; which kernels were chosen is kept for the next.
func openGPU(c cuda.Config) func() (exec.Backend, error) {
	if folder, err := os.UserCacheDir(); err == nil { // without one all is timed again
		c.Cache = filepath.Join(folder, "ebtrain", "cuda-choices.json")
	}
	return func() (exec.Backend, error) { return gpu(c) }
}

// open compiles a workload on a device, for this rank of host; nil is a world of one.
func open(ctx context.Context, w workload, device func() (exec.Backend, error), host collective.Comm) (_ *session, err error) {
	s := &session{w: w, world: 1}
	if host != nil {
		s.rank, s.world = host.Rank(), host.Size()
	}
	if s.be, err = device(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	began := time.Now()
	p, err := bidvl.PresetFor(w.Net)
	if err != nil {
		return nil, err
	}
	m := p.Config
	if w.Width > 0 {
		m.Net.Width = w.Width
	}
	if w.Latent > 0 {
		m.Net.Latent = w.Latent
	}
	m.FreshLatent = m.FreshLatent || w.Fresh
	if w.Still {
		m.Upper.LR, m.Lower.LR = still, still
		if m.Generator != nil {
			own := *m.Generator
			own.LR = still
			m.Generator = &own
		}
	}
	g, specs, err := w.build(m, s.world)
	if err != nil {
		return nil, err
	}
	s.vars = s.be.NewVars()
	if err := nn.Initialise(s.vars, specs, 1); err != nil {
		return nil, err
	}
	reduced, err := s.be.Connect(ctx, host)
	if err != nil {
		return nil, err
	}
	if s.step, err = s.be.Compile(g, exec.Options{Name: "step", Vars: s.vars, Comm: reduced, Deterministic: w.Shards > 0, Trace: func() func(exec.Event) { return s.trace }}); err != nil {
		return nil, err
	}
	s.names, s.feed = algo.Names(m.Report()), m.Feeder(s.step)
	s.cold = time.Since(began)
	return s, nil
}

// build is the step of a rank of so many.
func (w workload) build(m bidvl.Config, world int) (*graph.Graph, []nn.Variable, error) {
	parts := cmp.Or(w.Shards, world)
	g, specs, err := m.Step(parts, w.Batch/parts)
	if err != nil || w.Shards == 0 {
		return g, specs, err
	}
	shards := ddp.Shards{Virtual: parts, World: world, Batch: w.Batch / parts, Split: algo.Split(specs), Key: algo.InputKey}
	g, err = ddp.Virtualise(g, shards.Of(g))
	return g, algo.OfShards(specs, parts/world), err
}

func (s *session) close() error {
	var errs []error
	if s.step != nil {
		errs = append(errs, s.step.Close())
	}
	return errors.Join(append(errs, s.be.Close())...)
}

// fill fills the inputs of a step: each sample's numbers are those of its place in the
// global batch.
func (s *session) fill(step int64) {
	in := s.step.Input(algo.InputImages)
	samples := in.Type.Shape.At(0)
	each := in.Type.Shape.Len() / samples
	u := make([]float64, each)
	for i := range samples {
		philox.Name{Seed: 1, Purpose: philox.Testing, Step: uint32(step % 4), Sample: uint32(s.rank*samples + i)}.Uniform(u)
		for k, v := range u {
			in.F32()[i*each+k] = float32(2*v - 1)
		}
	}
	if key := s.step.Input(algo.InputKey); key != nil {
		copy(key.I64(), []int64{1, step, int64(s.rank * samples)})
	}
	s.feed(step, 0)
}

// losses runs steps one after the other and is their reports.
func (s *session) losses(ctx context.Context, steps int) ([][]float64, error) {
	var all [][]float64
	for i := range steps {
		s.fill(int64(i))
		if err := exec.Run(ctx, s.step); err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		out := s.step.Output(algo.OutputReport)
		row := make([]float64, len(s.names))
		for k := range row {
			row[k] = out.At(k)
		}
		all = append(all, row)
	}
	return all, nil
}

// lossesOf opens a workload for some steps.
func lossesOf(ctx context.Context, w workload, device func() (exec.Backend, error), steps int) ([][]float64, error) {
	s, err := open(ctx, w, device, nil)
	if err != nil {
		return nil, err
	}
	all, err := s.losses(ctx, steps)
	return all, errors.Join(err, s.close())
}

// apart is how far reports are from each other, relative to 1 + |number|.
func apart(a, b [][]float64) float64 {
	worst, _ := farthest(a, b)
	return worst
}

// farthest is apart, and the column in which they are.
func farthest(a, b [][]float64) (worst float64, column int) {
	if len(a) != len(b) {
		return math.Inf(1), 0
	}
	for i := range a {
		for k, v := range a[i] {
			d := math.Abs(v-b[i][k]) / (1 + math.Abs(v))
			if math.IsNaN(d) { // what is no number is no nearer than any
				return math.Inf(1), k
			}
			if d > worst {
				worst, column = d, k
			}
		}
	}
	return worst, column
}

// times are the durations of steps, two of them queued, after a warm-up of a few, and
// those of the host's calls that queued them; the inputs are those of one step, so that
// the host does next to nothing else.
func (s *session) times(ctx context.Context, steps int) (list, queued []time.Duration, err error) {
	if err := s.warmUp(ctx); err != nil {
		return nil, nil, err
	}
	launch := func() error {
		began := time.Now()
		err := s.step.Launch(ctx)
		queued = append(queued, time.Since(began))
		return err
	}
	if err := launch(); err != nil {
		return nil, nil, err
	}
	last := time.Now()
	for i := range steps {
		more, ahead := i+1 < steps, s.step.Depth() > 1
		if more && ahead {
			if err := launch(); err != nil {
				return nil, nil, err
			}
		}
		if err := s.step.Wait(ctx); err != nil {
			return nil, nil, err
		}
		now := time.Now()
		list, last = append(list, now.Sub(last)), now
		if more && !ahead {
			if err := launch(); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := s.finite(steps); err != nil {
		return nil, nil, err
	}
	return list[1:], queued[1:], nil
}

// warmUp runs the steps that are no measure: three count as cold, and three more follow.
func (s *session) warmUp(ctx context.Context) error {
	began := time.Now()
	s.fill(0)
	for i := range 6 {
		if i == 3 {
			s.cold += time.Since(began)
		}
		if err := exec.Run(ctx, s.step); err != nil {
			return err
		}
	}
	return nil
}

// finite is an error if the last of so many steps reports a number that is not.
func (s *session) finite(steps int) error {
	for i, name := range s.names {
		if v := s.step.Output(algo.OutputReport).At(i); math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("%s is %v after %d steps, which then are no measure", name, v, steps)
		}
	}
	return nil
}

// work is what a step asks of the device: the operations of its convolutions and
// products, and the bytes that everything else reads and writes.
func (s *session) work(ctx context.Context) (flops, bytes int64, err error) {
	s.trace = func(e exec.Event) {
		switch {
		case e.Flops > 0:
			flops += e.Flops
		case e.Kind != exec.Collective:
			bytes += e.Bytes
		}
	}
	defer func() { s.trace = nil }()
	err = exec.Run(ctx, s.step)
	return flops, bytes, err
}

// mean of some durations, in milliseconds: of a step's, as what the end of one is seen late
// is taken off the next.
func mean(list []time.Duration) float64 {
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return ms(sum) / float64(len(list))
}

// median of some durations, in milliseconds.
func median(list []time.Duration) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	list = slices.Sorted(slices.Values(list))
	return ms(list[len(list)/2])
}
