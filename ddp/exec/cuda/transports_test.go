package cuda

import (
	"fmt"
	"testing"

	"ebtrain/collective"
	"ebtrain/collective/host"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/exectest"
	"ebtrain/ddp/graph"
)

// TestTransports runs the suite's collectives between GPUs, over what joins ranks of a
// machine: NCCL, captured, launched and in our order, and pinned memory. Streams are held up
// at random.
func TestTransports(t *testing.T) {
	for name, c := range map[string]Config{
		"NCCL, captured":     {Graphs: GraphsOn},
		"NCCL, launched":     {Graphs: GraphsOff},
		"NCCL, in our order": {Graphs: GraphsOn, Deterministic: true},
		"staged":             {Transport: TransportStaged},
	} {
		for seed := range 3 {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				m := heldUp(t, seed)
				m.Set("DEVICES", "3")
				exectest.RunCollectives(t, onGPUs(c), graph.F32, []int{2 + seed%2}, []int{1 + 4*seed})
				if replays := m.Calls("cuGraphLaunch"); replays > 0 != (c.Graphs == GraphsOn) {
					t.Errorf("%d replays", replays)
				}
				m.Clean()
			})
		}
	}
}

// onGPUs are ranks that have a device each. They step often enough to replay what measures,
// too.
func onGPUs(c Config) exectest.Ranks {
	return exectest.Ranks{
		Open: func(t *testing.T, rank int) exec.Backend {
			o := c
			o.Plain, o.Ordinal, o.Lanes = true, rank, 3
			return open(t, o)
		},
		Group: func(t *testing.T, n int) []collective.Comm {
			below, err := host.NewLocal(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			var comms []collective.Comm
			for _, c := range below {
				t.Cleanup(func() {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				})
				comms = append(comms, c)
			}
			return comms
		},
		Steps: firstMeasured + 3,
	}
}
