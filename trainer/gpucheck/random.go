package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cuda"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/exec/exectest/randomgraph"
)

// mostRanks is how many ranks a random program may have.
const mostRanks = 4

// randomPrograms holds the GPU to the reference on programs that nobody wrote: launched
// one by one, captured and rematerialised, which promise the same bits, and with the
// libraries' kernels. Ranks share the GPU and are staged.
func randomPrograms(ctx context.Context, o *options, r *report) error {
	if o.size.Programs == 0 {
		return nil
	}
	return r.do(ctx, "b", "random programs", func() (text string, numbers map[string]any, err error) {
		var opened []exec.Backend
		defer func() {
			for _, b := range opened {
				err = errors.Join(err, b.Close())
			}
		}()
		ranks := func(c cuda.Config) []exec.Backend {
			c.Transport = cuda.TransportStaged
			for range mostRanks {
				b, e := gpu(c)
				if e != nil {
					err = errors.Join(err, e)
					return nil
				}
				opened = append(opened, b)
			}
			return opened[len(opened)-mostRanks:]
		}
		eager := ranks(cuda.Config{Plain: true, Graphs: cuda.GraphsOff})
		c := &randomgraph.Checker{Group: exectest.NewGroup, Targets: []randomgraph.Target{
			{Name: "plain", Ranks: eager, Bits: "plain"},
			{Name: "plain, rematerialised", Ranks: eager, Remat: true, Bits: "plain"},
			{Name: "plain, captured", Ranks: ranks(cuda.Config{Plain: true}), Bits: "plain"},
			{Name: "libraries", Ranks: ranks(cuda.Config{})},
		}}
		if err != nil {
			return "", nil, err
		}
		var failed error
		n, err := c.Hunt(1, o.size.Programs, time.Now().Add(o.size.Hunt), randomgraph.DefaultLimits(), func(f *randomgraph.Found) bool {
			failed = errors.New(f.String())
			return false // making one small may take a minute
		})
		return fmt.Sprintf("%d programs of %d nodes", n.Programs, n.Nodes), map[string]any{"programs": n.Programs}, errors.Join(failed, err)
	})
}
