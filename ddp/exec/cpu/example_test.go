package cpu_test

import (
	"context"
	"fmt"
	"log"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
)

// A program that minimises (w − 3)² by gradient descent: the variable is
// assigned at the end of each run.
func Example() {
	var b graph.Builder
	w := b.Var("w", graph.T(graph.F32))
	loss := b.Square(b.Shift(w, -3))
	b.Output("loss", loss)
	b.Assign(w, b.Sub(w, b.Scale(b.Grad(loss, w)[0], 0.25)))
	g, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}

	be, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer func() {
		if err := be.Close(); err != nil {
			log.Fatal(err)
		}
	}()
	vars := be.NewVars()
	if err := vars.Set("w", exec.NewTensor(graph.T(graph.F32))); err != nil {
		log.Fatal(err)
	}
	p, err := be.Compile(g, exec.Options{Name: "descend", Vars: vars})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		if err := exec.Run(context.Background(), p); err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Output("loss").Scalar())
	}
	if err := p.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 9
	// 2.25
	// 0.5625
}
