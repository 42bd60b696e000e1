// Package results writes RESULTS.md of the finished cells of experiments: for
// each a table of means and standard deviations beside the expected numbers, a
// verdict on each claim, plots, and what is missing. All of it comes from the
// cells and the plans; a cell of another commit than the newest one is named and
// left out.
package results
