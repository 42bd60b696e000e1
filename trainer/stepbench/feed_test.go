package main

import (
	"testing"

	"ebtrain/trainer/method/bidvl"
)

// TestEpochOf: weights move as the method moves them at first, and not at all later.
func TestEpochOf(t *testing.T) {
	c := bidvl.CIFAR10().Config
	got, want := c.Upper.Schedule(moving-1, epochOf(moving-1)), c.Upper.Schedule(moving-1, 0)
	if got != want || got[0] == 0 {
		t.Errorf("step %d has rates %v, want %v", moving-1, got, want)
	}
	if late := c.Upper.Schedule(moving, epochOf(moving)); late[0] != 0 {
		t.Errorf("step %d has the rate %v, want 0", moving, late[0])
	}
}
