package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"ebtrain/launch/cliflag"
)

// The second SIGTERM kills the children, but in a job of SLURM's, which sends several; there a
// SIGINT does.
func TestSecondSignal(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		kills   bool
	}{"alone": {nil, true}, "SLURM": {[]string{"SLURM_JOB_ID=7"}, false}} {
		t.Run(name, func(t *testing.T) {
			a := app{environ: c.environ}
			ctx, stop := withSignals(t.Context(), &a)
			defer stop()
			send := func(s syscall.Signal) {
				t.Helper()
				if err := syscall.Kill(os.Getpid(), s); err != nil {
					t.Fatal(err)
				}
			}
			send(syscall.SIGTERM)
			<-ctx.Done()
			time.Sleep(2 * cliflag.OneRequest)
			send(syscall.SIGTERM)
			if !c.kills {
				select {
				case <-a.kill:
					t.Fatal("the second SIGTERM kills")
				case <-time.After(cliflag.OneRequest):
				}
				send(syscall.SIGINT)
			}
			<-a.kill
		})
	}
}
