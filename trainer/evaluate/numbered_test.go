package main

import (
	"math"
	"slices"
	"testing"

	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/nn"
)

// numbered is a model whose outputs say which sample they are of: the energy of sample i is
// i, by which draws are named, and its logit is minus the sum of its values. Of what is
// measured by a mean, each has its own amount beside that.
type numbered struct{ toy.Config }

// number are those of n samples, as draws of them are named, and their sums.
func (m numbered) number(n int) (c *nn.Context, number, sum graph.ID) {
	c = nn.NewContext(nn.Eval, 1)
	key := c.Input(algo.InputKey, graph.KeyType)
	first := c.Reshape(c.Cast(c.Slice(key, 0, 2, 3, 1), graph.F32), graph.D(1))
	number = c.Add(c.Iota(graph.T(graph.F32, n), 0), first)
	x := c.Input(algo.InputImages, graph.T(graph.F32, n, m.C, m.H, m.W))
	return c, number, c.Sum(c.Reshape(x, graph.D(n, m.C*m.H*m.W)), 1)
}

func (m numbered) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	c, number, sum := m.number(n)
	c.Output(algo.OutputEnergy, number)
	c.Output(algo.OutputLogit, c.Neg(sum))
	return c.Commit()
}

func (m numbered) Reconstruct(_ nn.Mode, n int) (*graph.Graph, error) {
	c, number, sum := m.number(n)
	each := c.Reshape(c.Add(number, c.Scale(sum, 0)), graph.D(n, 1, 1, 1))
	c.Output(algo.OutputRecon, c.Add(each, c.Zeros(graph.T(graph.F32, n, m.C, m.H, m.W))))
	return c.Commit()
}

func (m numbered) Encode(n int) (*graph.Graph, error) {
	c, number, sum := m.number(n)
	c.Output(algo.OutputCode, c.Reshape(c.Add(number, c.Scale(sum, 0)), graph.D(n, 1)))
	return c.Commit()
}

// above is a graph whose outputs are the numbers and so much.
func (m numbered) above(n int, outputs map[string]float64) (*graph.Graph, error) {
	c, number, sum := m.number(n)
	for name, more := range outputs {
		c.Output(name, c.Add(c.Shift(number, more), c.Scale(sum, 0)))
	}
	return c.Commit()
}

func (m numbered) FisherLoss(n int) (*graph.Graph, error) {
	return m.above(n, map[string]float64{algo.OutputFisher: 1000})
}

func (m numbered) Loss(n int) (*graph.Graph, error) {
	return m.above(n, map[string]float64{algo.OutputLoss: 2000})
}

func (m numbered) PosteriorGap(n int) (*graph.Graph, error) {
	return m.above(n, map[string]float64{algo.OutputGap: 3000})
}

func (m numbered) Divergence(n int) (*graph.Graph, error) {
	return m.above(n, map[string]float64{algo.OutputEstimate: 4000, algo.OutputTruth: 5000})
}

// Whatever the batches, draws are named by the numbers of samples within their split; a
// measure is the mean of its own output; and AUROC is the share of pairs of a datum and
// another that are in order by the logit, of samples, noise and each set of --ood.
func TestNumbers(t *testing.T) {
	e := probing(t)
	e.trained.Model = numbered{e.trained.Model.(toy.Config)}
	const other = "synth:size=8,seed=4,test=70"
	e.o.ood, e.o.stats = []foreign{{"other", other}}, "batch"
	e.o.measures, e.o.picture = "energy,fisher,loss,gap,critic,rmse", noPicture
	r, err := e.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const data, batch, foreigners = 240, 32, 70
	middle := func(n float64) float64 { return (n - 1) / 2 }
	for name, c := range map[string]struct{ got, want float64 }{
		"fisher": {*r.Fisher, 1000}, "loss": {*r.Loss, 2000}, "gap": {*r.PosteriorGap, 3000}, "critic": {*r.Critic, 4000}, "truth": {*r.Truth, 5000},
	} {
		if !(math.Abs(c.got-c.want-middle(data)) <= 1e-9) {
			t.Errorf("%s is %v, want %v and %v", name, c.got, c.want, middle(data))
		}
	}
	square, x := 0.0, all(t, "test", func(int) float64 { return 1 }).X
	for i, v := range x {
		square += (float64(i/192) - v) * (float64(i/192) - v) / float64(len(x))
	}
	if want := math.Sqrt(square); !(math.Abs(*r.RMSERunning/want-1) <= 1e-5) || !(math.Abs(*r.RMSEBatch/want-1) <= 1e-5) {
		t.Errorf("the RMSE of numbers is %v and %v, want %v", *r.RMSEBatch, *r.RMSERunning, want)
	}
	of := map[string]float64{"data": data, otherSamples: batch, otherNoise: data, "other": foreigners}
	for _, row := range r.Energies {
		if n := of[row.Of]; row.N != int(n) || row.Mean != middle(n) || row.Min != 0 || row.Median != middle(n) || row.Max != n-1 {
			t.Errorf("energies %+v, want those of %v samples", row, n)
		}
	}
	sums := func(name, split string) (each []float64) {
		_, err := e.each(t.Context(), pass{phase: "x", data: name, split: split}, func(x []float32, _ []int64) error {
			for one := range slices.Chunk(x, 192) {
				sum := 0.0
				for _, v := range one {
					sum += float64(v)
				}
				each = append(each, sum)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return each
	}
	won, ours := 0.0, sums(figures, "test")
	theirs := sums(other, "test")
	for _, a := range ours {
		for _, b := range theirs {
			if a > b { // the logit is minus the sum, and that of data is low
				won += 1 / float64(len(ours)*len(theirs))
			}
		}
	}
	if len(r.AUROC) != 3 || r.AUROC[2].Against != "other" || !(math.Abs(r.AUROC[2].Value-won) <= 1e-3) || math.Abs(won-0.5) < 0.01 {
		t.Errorf("%+v, by pairs %v", r.AUROC, won)
	}
}

// So are those of latents that a probe sees, and of the cells of a density's map.
func TestNumbersOfLatentsAndCells(t *testing.T) {
	e := probing(t)
	e.trained.Model = numbered{e.trained.Model.(toy.Config)}
	seen, err := e.examples(t.Context(), e.own("x"), e.trained)
	if err != nil || seen.Dim != 1 || seen.N() != 240 {
		t.Fatal(seen.Dim, seen.N(), err)
	}
	cells := toyEvaluation(t, numbered{plane}, [2]float64{}, [2]float64{1, 1})
	logp, err := cells.logDensity(t.Context(), make([]float32, 2*2500), 0)
	if err != nil || len(logp) != 2500 {
		t.Fatal(len(logp), err)
	}
	for i, x := range seen.X {
		if x != float64(i) {
			t.Fatalf("the latent of sample %d is that of %v", i, x)
		}
	}
	for i, l := range logp {
		if l != -float64(i) {
			t.Fatalf("the density of cell %d is that of %v", i, -l)
		}
	}
}

// infinite is a model whose samples have an infinite energy.
type infinite struct{ toy.Config }

func (m infinite) Energies(_ nn.Mode, n int) (*graph.Graph, error) {
	c, number, sum := numbered(m).number(n)
	c.Output(algo.OutputEnergy, c.Exp(c.Shift(c.Add(number, c.Scale(sum, 0)), 1000)))
	return c.Commit()
}

// A mean that is infinite says that the model has diverged, as NaN does.
func TestInfiniteMean(t *testing.T) {
	e := probingOn(t, ref.New())
	e.trained.Model = infinite{e.trained.Model.(toy.Config)}
	if _, err := e.mean(t.Context(), e.own("energy"), algo.OutputEnergy, e.energyOf); err == nil || !diverged(t, e, err) {
		t.Errorf("%v is no divergence", err)
	}
}

// recorded notes what its normaliser is asked for, and by which seed it is drawn.
type recorded struct {
	many
	asked *[]algo.LogZOptions
	seeds *[]uint64
}

func (m recorded) LogZ(o algo.LogZOptions) (algo.Normaliser, error) {
	*m.asked = append(*m.asked, o)
	n, err := m.many.LogZ(o)
	for i, v := range n.Plan.Vars {
		if init := v.Init; init != nil {
			n.Plan.Vars[i].Init = func(dst []float64, s graph.Shape, name philox.Name) {
				*m.seeds = append(*m.seeds, name.Seed)
				init(dst, s, name)
			}
		}
	}
	return n, err
}

// Chains both ways have the steps that were asked for, and draws of the seed.
func TestLogZOptions(t *testing.T) {
	var asked []algo.LogZOptions
	var seeds []uint64
	e := toyEvaluation(t, recorded{many{plane, algo.ErrTooMany}, &asked, &seeds}, [2]float64{}, [2]float64{1, 1})
	e.o.seed = 77
	if _, err := e.logZ(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []algo.LogZOptions{{Exact: true}, {Chains: 3, Steps: 4}, {Chains: 3, Steps: 4, Back: true}}; !slices.Equal(asked, want) {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	none := func(seed uint64) bool { return seed == 0 } // before there is a run
	if seeds = slices.DeleteFunc(seeds, none); !slices.Equal(seeds, []uint64{77, 77}) {
		t.Errorf("drawn by the seeds %v", seeds)
	}
}
