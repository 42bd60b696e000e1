package enginetest_test

import (
	"flag"
	"testing"
	"time"

	"ebtrain/ddp/exec/cpu/linalg/dnnl"
	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/exec/cpu/linalg/engine/enginetest"
	"ebtrain/ddp/exec/cpu/linalg/native"
	"ebtrain/ddp/exec/cpu/linalg/winograd"
	"ebtrain/ddp/exec/cpu/threads"
)

var (
	productTime = flag.Duration("products.time", 4*time.Second, "how long TestRandomProducts tries random convolutions and matrix products, on all engines together")
	productSeed = flag.Uint64("products.seed", 1, "the first seed of TestRandomProducts")
)

// tiled is winograd in front of another engine, with the team of threads that it
// leaves open.
type tiled struct {
	engine.Engine
	team *threads.Team
}

func (e tiled) Close() error {
	err := e.Engine.Close()
	e.team.Close()
	return err
}

func onTeam(threadCount int, rest func(*threads.Team) (engine.Engine, error)) (engine.Engine, error) {
	team := threads.NewTeam(threadCount)
	e, err := rest(team)
	if err != nil {
		team.Close()
		return nil, err
	}
	return tiled{winograd.On(team, e), team}, nil
}

// TestRandomProducts holds every engine to random problems for a while:
// go test ./ddp/exec/cpu/linalg/engine/enginetest -run RandomProducts -v -products.time 10m
func TestRandomProducts(t *testing.T) {
	plainGo := func(team *threads.Team) (engine.Engine, error) { return native.On(team), nil }
	engines := []struct {
		name  string
		tiled bool
		open  func(threads int) (engine.Engine, error)
	}{
		{"native", false, func(n int) (engine.Engine, error) { return native.New(n), nil }},
		{"dnnl", false, dnnl.New},
		{"winograd on native", true, func(n int) (engine.Engine, error) { return onTeam(n, plainGo) }},
		{"winograd on dnnl", true, func(n int) (engine.Engine, error) {
			return onTeam(n, dnnl.On)
		}},
	}
	for _, e := range engines {
		for _, bf16 := range []bool{false, true} {
			name := e.name
			if bf16 {
				name += ", bf16"
			}
			t.Run(name, func(t *testing.T) {
				first, err := e.open(1)
				if err != nil {
					t.Skip(err) // there is no oneDNN
				}
				no := first.BF16()
				if err := first.Close(); err != nil {
					t.Fatal(err)
				}
				if bf16 && no != nil {
					t.Skip(no)
				}
				o := enginetest.RandomOptions{Seed: *productSeed, End: time.Now().Add(*productTime / time.Duration(2*len(engines))), Tiled: e.tiled, BF16: bf16}
				n := enginetest.Random(t, o, func(threads int) engine.Engine {
					e, err := e.open(threads)
					if err != nil {
						t.Fatal(err)
					}
					return e
				})
				t.Logf("%d problems %v", n, o)
			})
		}
	}
}
