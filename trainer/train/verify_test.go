package main

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestVerify verifies a hypergradient as a user would, and the sentences of those
// who cannot.
func TestVerify(t *testing.T) {
	for _, c := range []struct{ args, out, want string }{
		{"--preset bism-board-dsm --batch 8 --unroll 2", "model     16", ""},
		{"--preset bism-board-ssm --batch 8 --unroll 1 --inner sgd", "ok", ""},
		{"--preset bism-board-dsm --batch 7", "", "--verify-hypergradient of one process plays 2 ranks, which cannot share --batch 7 equally: want a multiple of 2"},
		{"--preset sm-board-dsm", "", "--algo sm has none: choose a preset of bism"},
	} {
		var out strings.Builder
		args := append(strings.Fields(c.args), "--data", "checkerboard:train=64", "--threads", "1", "--verify-hypergradient")
		err := run(t.Context(), args, nil, &out, io.Discard)
		if !strings.Contains(out.String(), c.out) || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %q, %v; want %q and %q", c.args, out.String(), err, c.out, c.want)
		}
	}
}

// TestVerifyIsStopped: the first signal ends a verification, which says so.
func TestVerifyIsStopped(t *testing.T) {
	heard := make(chan os.Signal, 1) // before the rank hears signals, they have no effect
	signal.Notify(heard, syscall.SIGTERM)
	defer signal.Reset(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	args := strings.Fields("--preset bism-board-dsm --batch 8 --unroll 20 --data checkerboard:train=64 --threads 1 --verify-hypergradient")
	ended := make(chan error)
	go func() { ended <- run(t.Context(), args, nil, io.Discard, io.Discard) }()
	for {
		select {
		case err := <-ended:
			if err == nil || err.Error() != "stopped by SIGTERM: nothing was verified" {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-time.After(20 * time.Millisecond):
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Losses of scores want float32 unless the user insists.
func TestScoresInBF16(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--algo sm", "the losses of --algo sm are of scores"},
		{"--algo bism", "the losses of --algo bism are of scores"},
		{"--algo sm --allow-bf16-scores", ""},
		{"--algo bidvl", ""},
	} {
		_, _, err := parse(nil, strings.Fields(c.args+" --out a --device cpu --precision bf16"), io.Discard)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.args, err, c.want)
		}
	}
	const want = "--allow-bf16-scores is of no use to --precision f32: leave it out, or say --precision bf16"
	if _, _, err := parse(nil, strings.Fields("--algo sm --allow-bf16-scores --out a --device cpu"), io.Discard); err == nil || err.Error() != want {
		t.Errorf("in float32: %v, want %q", err, want)
	}
}
