package hypercheck

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
	"ebtrain/trainer/algo"
)

func refBackend() (exec.Backend, error) { return ref.New(), nil }

func check(t toy) Check {
	const batch = 12
	c := Check{Model: t, Backend: refBackend, Images: make([]float32, 2*batch), Batch: batch,
		First: 36, Step: toyStep, Epoch: toyEpoch, Seed: 5}
	for i, v := range ddptest.Noise(3, len(c.Images)) {
		c.Images[i] = float32(v + 0.5)
	}
	return c
}

func run(t *testing.T, c Check) *Table {
	t.Helper()
	table, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The toy is what it says: its gradient is the formula's.
func TestToyIsItsFormula(t *testing.T) {
	for steps := range 4 {
		model := toy{steps: steps}
		c := check(model)
		m := &machine{check: &c, model: model, backend: ref.New(), step: c.Step}
		q, err := m.compile(part{ranks: 1, inner: algo.AllReduced})
		if err != nil {
			t.Fatal(err)
		}
		g, err := q.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.values([]string{"front.a", "back.b", "posterior.phi"})
		if err != nil {
			t.Fatal(err)
		}
		upper, da, db := model.closed(&c, v[0], v[1], v[2])
		if err := ddptest.Near([]float64{g.upper, g.of["front.a"][0], g.of["back.b"][0]}, []float64{upper, da, db}, 1e-14); err != nil {
			t.Errorf("%d steps: %v", steps, err)
		}
		if err := q.close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRightGradient(t *testing.T) {
	table := run(t, check(toy{steps: 4, size: 3}))
	if table.Err() != nil || !table.Simulated || table.Ranks != 2 {
		t.Errorf("%+v: %v", table, table.Err())
	}
	if len(table.Networks) != 2 || table.Networks[0].Name != "front" || table.Networks[0].Size != 3 || table.Networks[1].Name != "back" {
		t.Fatalf("networks %+v", table.Networks)
	}
	for _, n := range table.Networks {
		if n.Allowed > 1.01*DifferencesTolerance || n.Ranks > 1e-14 || n.Differences > 1e-7 || !(n.Norm > 0) {
			t.Errorf("%s: %+v", n.Name, n)
		}
		if !(n.Local > 1e-3) {
			t.Errorf("%s: local steps make no difference: %+v", n.Name, n)
		}
	}
	// b's part of the inner gradient, bφ, is no sum over samples.
	if front := table.Networks[0]; !(front.NoAdjoint > 1e-3) {
		t.Errorf("leaving out the adjoints makes no difference: %+v", front)
	}
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	if lines := strings.Split(b.String(), "\n"); len(lines) != 5 || !strings.HasPrefix(lines[2], "front ") || !strings.HasSuffix(lines[2], "ok") {
		t.Errorf("table\n%s", b.String())
	}
}

// Each wrong gradient is found, where it is wrong and by the column that can see
// it.
func TestWrongGradients(t *testing.T) {
	for _, tt := range []struct {
		name        string
		fault       fault
		want        []string // in the sentences
		ranks, diff bool     // which comparison fails, of front
	}{
		{"no adjoint", noAdjoint, []string{"gradient of front: 2 ranks differ"}, true, true},
		{"local steps", local, []string{"upper loss", "gradient of front: 2 ranks", "gradient of back: 2 ranks"}, true, true},
		{"gradients not averaged", onlyOwn, []string{"gradient of front: 2 ranks"}, true, true},
		{"draws named by the rank", rankSeed, []string{"upper loss", "gradient of front: 2 ranks"}, true, true},
		{"no path through the lower level", direct, []string{"gradient of front: it differs from central differences"}, false, true},
		{"1e-5 too large", offBy, []string{"gradient of back: it differs from central differences by"}, false, false},
		{"NaN", notANumber, []string{"gradient of front: 2 ranks differ from one process by +Inf", "central differences by +Inf"}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := run(t, check(toy{steps: 4, fault: tt.fault}))
			if table.Err() == nil {
				t.Fatalf("not found: %+v", table)
			}
			for _, want := range tt.want {
				if !strings.Contains(table.Err().Error(), want) {
					t.Errorf("got %v, want %q", table.Err(), want)
				}
			}
			n := table.Networks[0]
			if ranks, diff := !(n.Ranks <= Tolerance), n.Verdict == Wrong; ranks != tt.ranks || diff != tt.diff {
				t.Errorf("front: %+v", n)
			}
			var b strings.Builder
			if err := table.Write(&b); err != nil || !strings.Contains(b.String(), "WRONG") {
				t.Errorf("%v, table\n%s", err, b.String())
			}
		})
	}
}

// Ranks of a job find what a process alone finds when it plays as many.
func TestOnRanks(t *testing.T) {
	for _, n := range []int{2, 4} {
		tables := make([]*Table, n)
		comms, err := host.NewLocal(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for r, comm := range comms {
			wg.Go(func() {
				c := check(toy{steps: 3, size: 2})
				c.Comm, c.Directions = comm, 5
				table, err := Run(t.Context(), c)
				if err != nil {
					t.Error(err)
					comm.Abort(err)
				}
				tables[r] = table
			})
		}
		wg.Wait()
		for _, comm := range comms {
			if err := comm.Close(); err != nil {
				t.Error(err)
			}
		}
		if t.Failed() {
			return
		}
		c := check(toy{steps: 3, size: 2})
		c.Directions = 5
		alone := run(t, c)
		for r, table := range tables {
			if table.Err() != nil || table.Simulated || table.Ranks != n {
				t.Errorf("rank %d of %d: %+v: %v", r, n, table, table.Err())
			}
			if !reflect.DeepEqual(table, tables[0]) {
				t.Errorf("rank %d found %+v, rank 0 %+v", r, table, tables[0])
			}
		}
		alone.Simulated = false
		if n == 2 && !reflect.DeepEqual(tables[0], alone) {
			t.Errorf("2 ranks found %+v, one process alone %+v", tables[0], alone)
		}
	}
}

// After training steps the gradient is that of the values they leave, at the step
// after them.
func TestWarm(t *testing.T) {
	c := check(toy{steps: 3})
	cold := run(t, c)
	c.Step, c.Warm = toyStep-2, 2
	warm := run(t, c)
	if warm.Err() != nil {
		t.Error(warm.Err())
	}
	m := &machine{check: &c, model: toy{steps: 3}, backend: ref.New()}
	if err := m.warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.start) != 3 || m.step != toyStep {
		t.Fatalf("%d variables at step %d", len(m.start), m.step)
	}
	c.Step = m.step
	upper, _, _ := toy{steps: 3}.closed(&c, m.start[0].tensor.At(0), m.start[1].tensor.At(0), m.start[2].tensor.At(0))
	if !(math.Abs(warm.Upper-upper) <= 1e-14) || cold.Upper == warm.Upper {
		t.Errorf("upper loss %v, want %v; before the steps %v", warm.Upper, upper, cold.Upper)
	}
}

// Steps before the check are those of training, on the batch, each with its draws and rates.
// Without inner steps θ moves by the steps' numbers alone.
func TestWarmStepsAreTraining(t *testing.T) {
	const step = toyStep - 1
	for _, tt := range []struct {
		inner, warm int
		moved       float64
	}{{3, 1, 1e-3 * step}, {0, 2, 1e-3 * (step + toyStep)}} {
		model := toy{steps: tt.inner}
		c := check(model)
		c.Step, c.Epoch, c.Warm = step, step, tt.warm
		m := &machine{check: &c, model: model, backend: ref.New(), step: step}
		q, err := m.compile(part{ranks: 1, inner: algo.AllReduced})
		if err != nil {
			t.Fatal(err)
		}
		v, err := q.values([]string{"front.a", "back.b", "posterior.phi"})
		if err = errors.Join(err, q.close(), m.warm(t.Context())); err != nil {
			t.Fatal(err)
		}
		_, da, db := model.closed(&c, v[0], v[1], v[2])
		got := []float64{m.start[0].tensor.At(0), m.start[1].tensor.At(0)}
		if err := ddptest.Near(got, []float64{v[0] - 0.1*da + tt.moved, v[1] - 0.1*db + tt.moved}, 1e-5); err != nil {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The backend of training gives the same verdict.
func TestOnCPU(t *testing.T) {
	c := check(toy{steps: 3, size: 2})
	c.Backend = func() (exec.Backend, error) { return cpu.New(cpu.Config{Threads: 1}) }
	if table := run(t, c); table.Err() != nil || table.Networks[0].Local < 1e-3 {
		t.Errorf("%+v: %v", table, table.Err())
	}
}

// Without inner steps there is nothing that ranks could do wrong, and the upper
// loss does not depend on θ.
func TestNothingUnrolled(t *testing.T) {
	table := run(t, check(toy{}))
	for _, n := range table.Networks {
		if n.Norm != 0 || n.Ranks != 0 || n.Differences != 0 || n.NoAdjoint != 0 || n.Local != 0 {
			t.Errorf("%+v", n)
		}
	}
}

// single is a model with one level.
type single struct{ algo.Model }

func TestErrors(t *testing.T) {
	ok := check(toy{steps: 2})
	with := func(f func(*Check)) Check {
		c := ok
		f(&c)
		return c
	}
	broken := errors.New("no device")
	for _, tt := range []struct {
		name string
		c    Check
		want string
	}{
		{"one level", with(func(c *Check) { c.Model = single{toy{}} }), "no lower level"},
		{"odd batch", with(func(c *Check) { c.Batch = 11 }), "a batch of 11 cannot be shared evenly by 2 ranks"},
		{"cut images", with(func(c *Check) { c.Images = c.Images[1:] }), "23 values, expected 24"},
		{"directions", with(func(c *Check) { c.Directions = -1 }), "-1 directions"},
		{"steps", with(func(c *Check) { c.Warm = -1 }), "after -1 steps"},
		{"float32", with(func(c *Check) { c.Model = toy{steps: 2, fault: halfPrecision} }), "expected both in f64"},
		{"no gradients", with(func(c *Check) { c.Model = toy{steps: 2, fault: noGradient} }), "0 gradients"},
		{"no backend", with(func(c *Check) { c.Backend = func() (exec.Backend, error) { return nil, broken } }), "no device"},
	} {
		if _, err := Run(t.Context(), tt.c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, ok); err == nil {
		t.Error("an ended context gives no error")
	}
}

// Ranks that check different batches are told so.
func TestRanksThatDisagree(t *testing.T) {
	errs := ddptest.Ranks(2, func(rank int, comm collective.Comm) error {
		c := check(toy{steps: 2})
		c.Comm = comm
		c.Images[3] += float32(rank)
		_, err := Run(t.Context(), c)
		return err
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "images") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestRatio(t *testing.T) {
	for _, tt := range [][3]float64{{0, 0, 0}, {1, 2, 0.5}, {1, 0, math.Inf(1)}, {math.NaN(), 1, math.Inf(1)}, {0, math.NaN(), math.Inf(1)}} {
		if got := ratio(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%v/%v is %v", tt[0], tt[1], got)
		}
	}
}
