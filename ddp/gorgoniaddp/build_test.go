package gorgoniaddp_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"ebtrain/ddp/gorgoniaddp"
)

func TestGradRefusesASecondTime(t *testing.T) {
	for _, tc := range []struct {
		name   string
		second func(w, cost, grad *gorgonia.Node) error
	}{
		{"same cost", func(w, cost, grad *gorgonia.Node) error {
			_, err := gorgoniaddp.Grad(cost, w)
			return err
		}},
		{"second cost on the graph", func(w, cost, grad *gorgonia.Node) error {
			_, err := gorgoniaddp.Grad(gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Exp(w)))), w)
			return err
		}},
		{"gradient of the gradient", func(w, cost, grad *gorgonia.Node) error {
			_, err := gorgoniaddp.Grad(gorgonia.Must(gorgonia.Sum(grad)), w)
			return err
		}},
		{"first by gorgonia itself", func(w, cost, grad *gorgonia.Node) error {
			g := gorgonia.NewGraph()
			v := learnable(g, tensor.Float64, "v:3")
			c := gorgonia.Must(gorgonia.Sum(v))
			if _, err := gorgonia.Grad(c, v); err != nil {
				return err
			}
			_, err := gorgoniaddp.Grad(c, v)
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := gorgoniaddp.Build(func() error {
				w := learnable(gorgonia.NewGraph(), tensor.Float64, "w:3")
				cost := gorgonia.Must(gorgonia.Sum(gorgonia.Must(gorgonia.Cube(w))))
				grads, err := gorgoniaddp.Grad(cost, w)
				if err != nil {
					return err
				}
				return tc.second(w, cost, grads[0])
			})
			if !errors.Is(err, gorgoniaddp.ErrSecondGrad) || !strings.Contains(err.Error(), "silently wrong") {
				t.Errorf("got %v, want ErrSecondGrad with the reason", err)
			}
		})
	}
}

// The reason for the refusal: gorgonia's second gradient is wrong, without an
// error. If this fails, gorgonia has been repaired.
func TestGorgoniaSecondGradIsWrong(t *testing.T) {
	if err := gorgoniaddp.Build(func() (err error) {
		x := gorgonia.NewScalar(gorgonia.NewGraph(), tensor.Float64, gorgonia.WithName("x"), gorgonia.WithValue(2.0))
		cube := gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Mul(x, x)), x))
		first, err := gorgonia.Grad(cube, x)
		if err != nil {
			return err
		}
		second, err := gorgonia.Grad(first[0], x)
		if err != nil {
			return err
		}
		vm := gorgonia.NewTapeMachine(x.Graph())
		defer func() { err = errors.Join(err, vm.Close()) }()
		if err := vm.RunAll(); err != nil {
			return err
		}
		if got := floats(second[0].Value())[0]; got == 12 { // (x³)″ = 6x
			t.Errorf("second derivative is %v: gorgonia differentiates twice after all", got)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// The reason why Step refuses AdamW. If this fails, gorgonia has been repaired.
func TestGorgoniaAdamWChangesNothing(t *testing.T) {
	m, err := convnet.build(tensor.Float64, globalBatch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(m.feed(0, 0, 1), m.vm.RunAll()); err != nil {
		t.Fatal(err)
	}
	before := floats(m.learn[0].Value())
	if err := gorgonia.NewAdamW().Step(gorgonia.NodesToValueGrads(m.learn)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(floats(m.learn[0].Value()), before) {
		t.Error("AdamW changes the weights after all")
	}
}

func TestGradErrors(t *testing.T) {
	if _, err := gorgoniaddp.Grad(nil); err == nil {
		t.Error("no error for a nil cost")
	}
	err := gorgoniaddp.Build(func() error {
		w := learnable(gorgonia.NewGraph(), tensor.Float64, "w:3")
		_, err := gorgoniaddp.Grad(w, w)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), `Grad of "w"`) {
		t.Errorf("got %v for a cost that is not a scalar", err)
	}
}

// Build keeps builders apart from each other, and running needs no lock: the
// race detector judges.
func TestBuildWhileOthersRun(t *testing.T) {
	var wg sync.WaitGroup
	for seed := range uint64(4) {
		wg.Go(func() {
			for range 3 {
				m, err := mlp.build(tensor.Float32, globalBatch, seed)
				if err != nil {
					t.Error(err)
					return
				}
				for step := range 3 {
					if err := errors.Join(m.feed(step, 0, 1), m.vm.RunAll()); err != nil {
						t.Error(err)
					}
					m.vm.Reset()
				}
			}
		})
	}
	wg.Wait()
}

func TestBuildReleasesTheLock(t *testing.T) {
	broken := errors.New("broken")
	if err := gorgoniaddp.Build(func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want the function's own error", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("Build hid a panic")
			}
		}()
		_ = gorgoniaddp.Build(func() error { panic("from gorgonia.Must") })
	}()
	if err := gorgoniaddp.Build(func() error { return nil }); err != nil {
		t.Error(err)
	}
}
