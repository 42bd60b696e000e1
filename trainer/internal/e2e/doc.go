// Package e2e holds the tests of the programs as a user runs them: built once
// with the tags of the test, started as processes in an empty folder, judged by
// their exit code, what they print and what they leave on the disk.
//
// With -short only a smoke test runs. Where the test is built with the race detector
// the programs are, too.
package e2e
