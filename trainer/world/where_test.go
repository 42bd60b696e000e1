package world

import (
	"testing"

	"ebtrain/collective/processors"
)

// Ranks share processors that both may run on, on one machine: not those of disjoint sets, nor
// equal numbers of another machine.
func TestSharing(t *testing.T) {
	set := processors.Of
	hosts := []string{"h", "h", "h", "other"}
	for name, c := range map[string]struct {
		where    []whereabouts
		sharing  int // of rank 0
		together int // processors of its machine
	}{
		"bound apart":           {[]whereabouts{{"m", set(0, 1)}, {"m", set(2, 3)}, {"m", set(4, 5)}, {"n", set(0, 1)}}, 1, 6},
		"not bound":             {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}, {"n", set(0, 1)}}, 3, 2},
		"two on each":           {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(2, 3)}, {"n", set(0, 1)}}, 2, 4},
		"some in common":        {[]whereabouts{{"m", set(0, 1)}, {"m", set(1, 2)}, {"m", set(2, 3)}, {"n", set(0, 1)}}, 2, 4},
		"hosts of one machine":  {[]whereabouts{{"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}, {"m", set(0, 1)}}, 4, 2},
		"machines without name": {[]whereabouts{{"", set(0, 1)}, {"", set(0, 1)}, {"", set(0, 1)}, {"", set(0, 1)}}, 3, 2},
	} {
		if n := sharing(c.where, hosts, 0); n != c.sharing {
			t.Errorf("%s: %d ranks share the processors of rank 0, want %d", name, n, c.sharing)
		}
		if n := together(c.where, hosts, 0).Count(); n != c.together {
			t.Errorf("%s: %d processors, want %d", name, n, c.together)
		}
	}
}
