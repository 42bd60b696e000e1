package hypercheck

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strings"

	"ebtrain/collective"
	"ebtrain/ddp"
	"ebtrain/ddp/exec"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// value is a variable as training has left it.
type value struct {
	name   string
	tensor *exec.Tensor
}

// warm does the training steps before the check, in one process.
func (m *machine) warm(ctx context.Context) (err error) {
	c := m.check
	m.step = c.Step
	if c.Warm == 0 {
		return nil
	}
	g, specs, err := c.Model.Step(1, c.Batch)
	if err != nil {
		return err
	}
	vars := m.backend.NewVars()
	if err := nn.Initialise(vars, specs, c.Seed); err != nil {
		return err
	}
	p, err := m.backend.Compile(g, exec.Options{Name: "step", Vars: vars})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	m.fill(p, part{ranks: 1})
	feed := c.Model.Feeder(p)
	for range c.Warm {
		m.name(p, c.First)
		feed(m.step, c.Epoch)
		if err := exec.Run(ctx, p); err != nil {
			return fmt.Errorf("step %d: %w", m.step, err)
		}
		m.step++
	}
	for _, v := range specs {
		t, err := vars.Get(v.Name)
		if err != nil {
			return err
		}
		m.start = append(m.start, value{v.Name, t})
	}
	return nil
}

// begin sets those of the variables that training has left a value of.
func (m *machine) begin(vars exec.Vars, specs []nn.Variable) error {
	types := map[string]nn.Variable{}
	for _, v := range specs {
		types[v.Name] = v
	}
	for _, s := range m.start {
		v, ok := types[s.name]
		if !ok {
			continue // the gradient does not depend on it
		}
		if v.Type.Shape != s.tensor.Type.Shape {
			return fmt.Errorf("hypercheck: variable %s is %v in the gradient and %v in training", s.name, v.Type, s.tensor.Type)
		}
		t := exec.NewTensor(v.Type)
		for i := range v.Type.Shape.Len() {
			t.SetAt(i, s.tensor.At(i))
		}
		if err := vars.Set(s.name, t); err != nil {
			return err
		}
	}
	return nil
}

// agree makes sure that all ranks check the same model, at the same values, on
// the same batch.
func (m *machine) agree(ctx context.Context, comm collective.Comm) error {
	g, _, err := m.model.Hypergradient(m.options(part{ranks: 1, inner: algo.AllReduced}))
	if err != nil {
		return err
	}
	c := m.check
	images := fnv.New64a()
	for _, v := range c.Images {
		u := math.Float32bits(v)
		write(images, []byte{byte(u), byte(u >> 8), byte(u >> 16), byte(u >> 24)})
	}
	var text strings.Builder
	fmt.Fprintf(&text, "seed %d\nstep %d\nepoch %d\nfirst sample %d\ndirections %d\nimages %x\n",
		c.Seed, m.step, c.Epoch, c.First, c.Directions, images.Sum64())
	for _, s := range m.start {
		h := fnv.New64a()
		write(h, s.tensor.Bytes())
		fmt.Fprintf(&text, "variable %s %x\n", s.name, h.Sum64())
	}
	if err := g.Dump(&text); err != nil {
		return err
	}
	return ddp.Agree(ctx, comm, "hypergradient to verify", text.String())
}

// write writes to a hash, which never fails to take a write.
func write(h io.Writer, b []byte) { _, _ = h.Write(b) }
