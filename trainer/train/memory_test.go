package main

import (
	"errors"
	"fmt"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/device"
	"ebtrain/trainer/run/loop"
)

// TestDoesNotFit: what needs too much says of whose memory, and what to do, wherever a
// program is compiled; --remat is no advice to who has it.
func TestDoesNotFit(t *testing.T) {
	short := fmt.Errorf("step 7: %w", &exec.MemoryError{Need: 3 << 30, Max: 1 << 30})
	of := device.Store{Bytes: 2 << 30, Of: "this machine"}
	o := &options{}
	want := "a step does not fit into the memory of this machine, shared by 2 ranks: its intermediate values take at least 3.000 GiB, and it may take 1.000 GiB: choose a smaller --batch, narrower networks or fewer unrolled steps, or try --remat"
	if got := doesNotFit(short, o, of, 2); got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	o.how.Remat = true
	want = "a step does not fit into the memory of GPU 1: its intermediate values take at least 3.000 GiB, and it may take 1.000 GiB: choose a smaller --batch, narrower networks or fewer unrolled steps"
	if got := doesNotFit(short, o, device.Store{Bytes: 1 << 30, Of: "GPU 1", Own: true}, 2); got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	want = "the program that draws samples does not fit into the memory of this machine: its intermediate values take at least 3.000 GiB, and it may take 1.000 GiB: choose fewer --samples"
	if got := doesNotFit(fmt.Errorf("%w: %w", loop.ErrSampler, short), o, of, 1); got.Error() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, err := range []error{nil, errors.New("another")} {
		if got := doesNotFit(err, o, of, 2); !errors.Is(got, err) {
			t.Errorf("%v has become %v", err, got)
		}
	}
}
