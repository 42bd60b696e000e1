//go:build race

package loop_test

// raceEnabled says that the race detector keeps memory of its own.
const raceEnabled = true
