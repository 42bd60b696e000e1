// Package golden compares training steps with what the PyTorch programs in ../peers
// compute: two tiny steps in float64, from weights, samples and draws that both sides
// make by one formula.
//
// It is for tests. A Step runs the graph that a model builds, with an input in the
// place of every draw and, on request, F64 for every F32; nothing else of it changes.
package golden

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/exec"
)

// File is what a peer has computed, as its --golden writes it.
type File struct {
	Losses [][]float64          `json:"losses"` // of each step
	Order  []string             `json:"order"`  // of the weights, by which Wave numbers them
	Params map[string][]float64 `json:"params"` // the weights after the last step
}

// steps is how many a peer takes.
const steps = 2

// Read reads one.
func Read(path string) (f File, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, fmt.Errorf("%s: %w", path, err)
	}
	if len(f.Losses) != steps || len(f.Params) == 0 || len(f.Order) != len(f.Params) {
		return f, fmt.Errorf("%s: want %d steps and some weights in order, got %d, %d and %d", path, steps, len(f.Losses), len(f.Params), len(f.Order))
	}
	return f, nil
}

// near says how losses and weights differ from the peer's: an error names the first
// with |got − want| > tol·(1 + |want|).
func (f File) near(losses [][]float64, vars exec.Vars, tol float64) error {
	var errs []error
	for i, want := range f.Losses {
		if err := ddptest.Near(losses[i], want, tol); err != nil {
			errs = append(errs, fmt.Errorf("losses of step %d: %w", i, err))
		}
	}
	for _, name := range f.Order {
		got, err := vars.Get(name)
		if err == nil {
			err = ddptest.Near(ddptest.Numbers(got), f.Params[name], tol)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Wave are the peers' numbers, shift + scale·sin(1.3·i + 0.7·k).
func Wave(n, k int, scale, shift float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = shift + scale*math.Sin(1.3*float64(i)+0.7*float64(k))
	}
	return v
}
