//go:build !race

package colltest

const raceEnabled = false
