package supervise

import (
	"strings"
	"testing"

	"ebtrain/launch/statuspage"
)

func TestFlight(t *testing.T) {
	got := strings.Join(flight([]flown{
		{0, statuspage.Meetings{Begun: 8813, Ended: 8812}, "during all-reduce generator/bucket 3, seq 8812, step 41"},
		{1, statuspage.Meetings{Begun: 8811, Ended: 8811}, "during load, step 41"},
		{2, statuspage.Meetings{Begun: 8813, Ended: 8813}, "during step, step 41"},
	}), "\n")
	want := `  rank        begun        ended  last seen
     0         8813         8812  all-reduce generator/bucket 3, seq 8812, step 41  (waits)
     1         8811         8811  load, step 41  <-- 2 behind: others wait for it
     2         8813         8813  step, step 41`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
