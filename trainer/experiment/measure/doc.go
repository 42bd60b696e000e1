// Package measure is what can be measured of a finished training run: each
// Measure takes one number from what evaluate --json printed, from metrics.jsonl,
// or from what the system says of the processes. All is the one list of them; a
// field of evaluate that has another name is changed there.
//
// Everything here is a pure function of its arguments.
package measure
