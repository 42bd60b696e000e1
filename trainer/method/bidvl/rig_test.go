package bidvl

import (
	"slices"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nets"
	"ebtrain/trainer/model/nn"
)

// rig builds the steps of a config with some network and runs them.
type rig struct {
	cfg   Config
	net   nets.Networks
	dtype graph.DType
	// sameDraws gives every step the latents and the noise of step 0.
	sameDraws bool
}

func tinyRig(cfg Config) rig {
	return rig{cfg: cfg, net: tiny{signed: cfg.UpperLoss == Hinge}, dtype: graph.F64}
}

// step is a step of batch samples on each of world ranks, before Commit.
func (r rig) step(world, batch int) *step {
	c := nn.NewContext(nn.Train, world)
	c.DType = r.dtype
	s := newStep(c, r.cfg, r.net, batch)
	s.build()
	return s
}

// train runs steps steps on world ranks with the same images at each, and
// returns the reports and the variables of each rank.
func (r rig) train(world, steps int, images []float64) (reports []report, sets []exec.Vars, err error) {
	n := r.cfg.Net
	sample := n.Channels * n.Size * n.Size
	batch := len(images) / sample / world
	sets = make([]exec.Vars, world)
	err = ddptest.Each(world, func(rank int, comm collective.Comm) error {
		s := r.step(world, batch)
		g, err := s.Commit()
		if err != nil {
			return err
		}
		vars := ddptest.NewVars()
		sets[rank] = vars
		if err := nn.Initialise(vars, s.Variables(), testSeed); err != nil {
			return err
		}
		for i := range steps {
			out, err := ddptest.Run(g, vars, comm, r.inputs(i, rank*batch, images[rank*batch*sample:(rank+1)*batch*sample]))
			if err != nil {
				return err
			}
			if rank == 0 {
				reports = append(reports, report{r.cfg.reported(), out[algo.OutputReport]})
			}
		}
		return nil
	})
	return reports, sets, err
}

func (r rig) inputs(step, first int, images []float64) ddptest.Values {
	in := ddptest.Values{algo.InputImages: images, algo.InputKey: {testSeed, float64(step), float64(first)}, algo.InputStop: {0}}
	if r.sameDraws {
		in[algo.InputKey][1] = 0
	}
	for _, a := range r.cfg.optimisers() {
		for nth := range a.steps {
			s := a.Schedule(int64(step*a.steps+nth), 0)
			in[a.InputN(nth)] = []float64{float64(s[0]), float64(s[1])}
		}
	}
	return in
}

// pictures are n images of the config's sizes, in (−1, 1).
func (r rig) pictures(n int) []float64 {
	size := r.cfg.Net
	x := ddptest.Noise(1, n*size.Channels*size.Size*size.Size)
	for i := range x {
		x[i] = 0.9 * x[i] / (1 + max(x[i], -x[i]))
	}
	return x
}

// report is a step's report.
type report struct {
	names  []string
	values []float64
}

// named is an entry of a report.
func named(r report, name string) float64 {
	i := slices.Index(r.names, name)
	if i < 0 {
		panic("bidvl: the report has no " + name)
	}
	return r.values[i]
}

func numbers(t *testing.T, vars exec.Vars, name string) []float64 {
	t.Helper()
	x, err := vars.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	return ddptest.Numbers(x)
}

func stateOf(t *testing.T, vars exec.Vars) state {
	s := state{}
	for _, name := range vars.Names() {
		s[name] = numbers(t, vars, name)
	}
	return s
}
