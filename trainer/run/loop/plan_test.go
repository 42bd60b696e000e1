package loop_test

import (
	"strings"
	"testing"

	"ebtrain/trainer/method/bidvl"
	"ebtrain/trainer/run/loop"
)

// TestPlanMustBeShared gives rank 1 other plans than rank 0: no step is run, and both say
// where the plans differ. Where nobody compared them the ranks would stop after a step, as
// they are asked to, and not wait for each other without end.
func TestPlanMustBeShared(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	for _, c := range []struct {
		name   string
		alg    func(rank int, c *bidvl.Config) // may be nil
		config func(rank int, c *loop.Config)  // may be nil
		want   string                          // of both ranks' errors
	}{
		{name: "another order", want: `program "step"`, alg: func(rank int, c *bidvl.Config) {
			if rank == 1 {
				c.Order = bidvl.LowerFirst
			}
		}},
		{name: "another width", want: `program "step"`, alg: func(rank int, c *bidvl.Config) { c.Net.Width = 4 + 4*rank }},
		{name: "another factor", want: "program, line ", alg: func(rank int, c *bidvl.Config) { c.VAEWeight = float64(1 + rank) }},
		{name: "other settings", want: "program, line 1: ", config: func(rank int, c *loop.Config) { c.Digest = []string{"one", "two"}[rank] }},
		{name: "more steps", want: "program, line 3: ", config: func(rank int, c *loop.Config) { c.Steps += int64(rank) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := job{world: 2, config: loop.Config{Batch: 4, Steps: 2, Seed: 1}, plan: c.config}
			j.parts = func(rank int, p *loop.Parts) {
				p.Stop = stop
				if c.alg == nil {
					return
				}
				alg := p.Model.(bidvl.Config)
				c.alg(rank, &alg)
				p.Model = alg
			}
			_, errs := j.run(t)
			for r, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("rank %d: %v, want an error that says %q", r, err, c.want)
				}
			}
			if len(j.seen.records) != 0 {
				t.Error("a step was run")
			}
		})
	}
}
