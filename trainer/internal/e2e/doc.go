// Package e2e holds the tests of the programs as a user runs them: built once
// with the tags of the test, started as processes in an empty folder, judged by
// their exit code, what they print and what they leave on the disk.
//
// With -short only a smoke test runs. The programs are never built with the
// race detector, also when the test is: it slows training tenfold and the
// packages' own tests run under it.
package e2e
