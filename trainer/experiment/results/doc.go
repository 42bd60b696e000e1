// Package results writes RESULTS.md of the finished cells of experiments: for
// each a table of means and standard deviations beside the expected numbers, a
// verdict on each claim, plots, and what is missing. All of it comes from the
// cells and the plans. The cells of a row are of one commit, that of its newest; those
// of another are named and left out. Rows may be of different commits, and the report
// then says which, unless their times are compared.
package results
