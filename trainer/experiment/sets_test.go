package main

import "testing"

// Where no data set is given by name, that is said, and no empty list of names.
func TestSetOfNoName(t *testing.T) {
	const want = "--set X=Y: board trains on no data sets that are given by name: leave it out"
	if _, err := folders("set", []string{"X=Y"}, nil, "board trains on"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
