//go:build race

package colltest

// raceEnabled says that the race detector slows everything by ten times.
const raceEnabled = true
