package host

import (
	"testing"
	"time"

	"ebtrain/collective"
)

// TestRollCallOfTheWaitBefore: a timer that ran out as one wait ended, and whose call comes when
// the next has begun, says nothing of that: all have its whole limit to come.
func TestRollCallOfTheWaitBefore(t *testing.T) {
	comms, err := NewLocal(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range comms {
		defer shut(t, c)
	}
	r := newRollCall(comms[0], time.Minute)
	barrier := collective.Request{Kind: collective.Barrier}
	r.expect(barrier, true)
	r.over()
	r.expect(barrier, true)
	r.late()
	r.late()
	r.over()
	r.due = time.Time{} // late of a wait that is over, with none behind it
	r.late()
	r.late()
	if err := comms[0].Failure(); err != nil {
		t.Errorf("the wait that has just begun ends with: %v", err)
	}
}
