package supervise

import (
	"strings"
	"testing"
	"time"

	"ebtrain/launch/rendezvous"
	"ebtrain/launch/statuspage"
)

func flown(rank int, met statuspage.Meetings, during, state string, last ...rendezvous.Collective) rendezvous.Flown {
	return rendezvous.Flown{Rank: rank, Host: "node01", Pid: 100 + rank, Met: met, During: during, State: state, Last: last, At: time.Unix(100, 0).UTC()}
}

func collective(seq uint64, label string, begun, took time.Duration, bad bool) rendezvous.Collective {
	c := rendezvous.Collective{Seq: seq, Kind: "all-reduce", Op: "mean", Type: "f32", Len: 1000, Label: label, Begun: time.Unix(100, 0).UTC().Add(-begun), Bad: bad}
	if took >= 0 {
		c.Ended = c.Begun.Add(took)
	}
	return c
}

func TestFlightTable(t *testing.T) {
	const during = "during all-reduce generator/bucket 3, seq 8812, step 41"
	waits := collective(8812, "generator/bucket 3", 2100*time.Millisecond, -1, false)
	for _, tt := range []struct {
		name, want string
		e          rendezvous.ShowFlight
	}{
		{"stuck", `
ranks  seq   collective                     size            state
0,2-3  8812  all-reduce generator/bucket 3  mean f32[1000]  waits for 2.1s; step 41
1      8810  all-reduce generator/bucket 1  mean f32[1000]  done 12s ago; load, step 41; stopped by a signal  <-- 2 behind, 3 ranks wait
4      8813  barrier                        -               done 1ms ago; load, step 42
5      -     -                              -               no collective yet  <-- 8813 behind, 3 ranks wait
?                                                           node 3 (node04) does not answer`,
			rendezvous.ShowFlight{Ranks: []rendezvous.Flown{
				flown(0, statuspage.Meetings{Begun: 8813, Ended: 8812}, during, "", waits),
				flown(1, statuspage.Meetings{Begun: 8811, Ended: 8811}, "during load, step 41", "stopped by a signal", collective(8810, "generator/bucket 1", 12500*time.Millisecond, 500*time.Millisecond, false)),
				flown(2, statuspage.Meetings{Begun: 8813, Ended: 8812}, during, "", waits),
				flown(3, statuspage.Meetings{Begun: 8813, Ended: 8812}, during, "", waits),
				flown(4, statuspage.Meetings{Begun: 8814, Ended: 8814}, "during load, step 42", "", rendezvous.Collective{Seq: 8813, Kind: "barrier", Begun: time.Unix(99, 0), Ended: time.Unix(100, -1e6)}),
				flown(5, statuspage.Meetings{}, "", ""),
			}, Silent: []string{"node 3 (node04)"}}},
		{"killed", `
ranks  seq   collective                     size            state
0      8812  all-reduce generator/bucket 3  mean f32[1000]  failed after 3ms; all-reduce generator/bucket 3, seq 8812, step 41
1      8811  all-reduce generator/bucket 2  mean f32[1000]  done 900ms ago; step, step 41; killed by SIGKILL  <-- 1 behind, 1 rank waits`,
			rendezvous.ShowFlight{Ranks: []rendezvous.Flown{
				flown(0, statuspage.Meetings{Begun: 8813, Ended: 8813}, during, "", collective(8812, "generator/bucket 3", 5*time.Millisecond, 3*time.Millisecond, true)),
				flown(1, statuspage.Meetings{Begun: 8812, Ended: 8812}, "during step, step 41", "killed by SIGKILL", collective(8811, "generator/bucket 2", time.Second, 100*time.Millisecond, false)),
			}}},
	} {
		if got := strings.Join(flightTable(tt.e), "\n"); got != strings.TrimPrefix(tt.want, "\n") {
			t.Errorf("%s: got\n%s\nwant%s", tt.name, got, tt.want)
		}
	}
}

func TestFlightReport(t *testing.T) {
	e := rendezvous.ShowFlight{Ranks: []rendezvous.Flown{flown(0, statuspage.Meetings{Begun: 3, Ended: 2}, "", "",
		collective(0, "a", 3*time.Second, time.Second, false), collective(1, "b", 2*time.Second, time.Second, true), collective(2, "c", time.Second, -1, false))}}
	want := `== 1970-01-01T00:01:40Z: somebody asked
TABLE
-- rank 0 (node01, pid 100): 3 begun, 2 ended
0  00:01:37.000000  all-reduce  a  mean f32[1000]  took 1s
1  00:01:38.000000  all-reduce  b  mean f32[1000]  failed after 1s
2  00:01:39.000000  all-reduce  c  mean f32[1000]  runs

`
	if got := string(flightReport(e, []string{"TABLE"}, time.Unix(100, 0).UTC())); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
