package supervise

import (
	"testing"

	"ebtrain/launch/exitcode"
	"ebtrain/launch/rendezvous"
)

// Where the output cannot be written, ranks that were asked to stop for it end with 1, however
// each takes that; one that fails of itself has its own code.
func TestCodeOfUnwritten(t *testing.T) {
	stopped := &rendezvous.Cause{Kind: rendezvous.CauseStopped, Signal: "SIGTERM", SignalNumber: 15}
	failed := &rendezvous.Cause{Kind: rendezvous.CauseExit, ExitCode: 7}
	for _, tt := range []struct {
		finish          rendezvous.Finish
		want, unwritten int
	}{
		{rendezvous.Finish{}, 0, 0},
		{rendezvous.Finish{Code: exitcode.Requeue}, exitcode.Requeue, 1},
		{rendezvous.Finish{Code: exitcode.Signal + 15}, exitcode.Signal + 15, 1}, // of programs that do not handle it
		{rendezvous.Finish{Code: exitcode.Signal + 15, Cause: stopped}, exitcode.Signal + 15, 1},
		{rendezvous.Finish{Code: 7, Cause: failed}, 7, 7},
	} {
		if code := (&agent{finish: &tt.finish}).code(); code != tt.want {
			t.Errorf("%v: %d", tt.finish, code)
		}
		if code := (&agent{finish: &tt.finish, unwritten: true}).code(); code != tt.unwritten {
			t.Errorf("%v, unwritten: %d, want %d", tt.finish, code, tt.unwritten)
		}
	}
}
