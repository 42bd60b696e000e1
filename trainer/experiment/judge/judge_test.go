package judge

import (
	"math"
	"strings"
	"testing"
)

// row is a row with one measure, of seeds 1, 2, …; NaN was not measured.
func row(measure string, values ...float64) Row {
	r := Row{Values: map[string]map[uint64]float64{measure: {}}}
	for i, v := range values {
		if !math.IsNaN(v) {
			r.Values[measure][uint64(i+1)] = v
		}
	}
	return r
}

func TestSpread(t *testing.T) {
	table := Table{"a": row("ll", 1, 2, 3, 6), "b": row("ll", 5), "c": row("ll")}
	for name, want := range map[string]Spread{
		"a": {4, 3, math.Sqrt(14.0 / 3)}, "b": {1, 5, 0}, "c": {}, "d": {},
	} {
		got := table.Spread(Value{name, "ll"})
		if got.N != want.N || got.Mean != want.Mean || !(math.Abs(got.SD-want.SD) <= 1e-12) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestChecks(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	diverged := row("ll")
	diverged.Diverged = []uint64{1}
	partly := row("ll", nan, 9, 9)
	partly.Diverged = []uint64{1}
	table := Table{
		"low": row("ll", 1, 2, 3), "mid": row("ll", 2, 3, 4), "high": row("ll", 2.5, 3.5, 4.5), "one": row("ll", nan, 10),
		"far": row("ll", 4, 5, 6), "wide": row("ll", 5, 10, 15), "top": row("ll", 12, 13, 13.5),
		"other": row("ll", nan, nan, 7), "four": row("ll", 1, 2, 3, 4), "dent": row("ll", 2.5, 1.9, 4.5, 5.5), "cross": row("ll", 2.5, 1.9, 100), "gone": diverged, "partly": partly, "empty": row("ll"),
		"late": row("ll", 5, 6, nan, 90),
		"x0":   row("ms", 10), "x1": row("ms", 12.1), "x5": row("ms", 20), "x10": row("ms", 30), "bent": row("ms", 40),
		"g0": row("bias", 0.8), "g1": row("bias", 0.4), "g2": row("bias", 0.2), "g3": row("bias", 0.1), "minus": row("bias", -1),
		"b0": row("bias", 0), "b1": row("bias", 1), "b2": row("bias", 2),
	}
	ll := func(rows ...string) []Value { return Rows("ll", rows...) }
	v := func(row string) Value { return Value{row, "ll"} }
	for _, c := range []struct {
		name  string
		check Check
		state State
		want  string // in the detail
	}{
		{"near", Near{v("low"), Number{Value: 2.1, Tol: 0.2}}, Holds, "2 (3 seeds)"},
		{"at the edge", Near{v("low"), Number{Value: 2.5, Tol: 0.5}}, Holds, "2 (3 seeds)"},
		{"too low", Near{v("low"), Number{Value: 2.5, Tol: 0.3}}, Fails, "2 (3 seeds), too low by 0.2"},
		{"too high", Near{v("low"), Number{Value: 1, Tol: 0.3}}, Fails, "too high by 0.7"},
		{"in a range", Near{v("low"), Number{Value: 1.5, To: 2.5}}, Holds, "2"},
		{"range that falls", Near{v("low"), Number{Value: -1, To: -2}}, Fails, "too high by 3"},
		{"near, diverged", Near{v("gone"), Number{Value: 1, Tol: 9}}, Fails, "gone diverged (seed 1)"},
		{"near, not run", Near{v("empty"), Number{Value: 1, Tol: 9}}, NotRun, "no ll of empty"},
		{"near, no row", Near{v("nowhere"), Number{Value: 1, Tol: 9}}, NotRun, "no ll of nowhere"},

		{"order", Order{Rising: ll("low", "mid", "high")}, Holds, "for 3 seeds and in the mean"},
		{"order with margin", Order{Rising: ll("low", "mid"), Margin: 1}, Holds, "3 seeds"},
		{"margin too small", Order{Rising: ll("low", "high"), Margin: 1.75}, Fails, "in the mean: low is 2, high is 3.5, short by 0.25"},
		{"order reversed", Order{Rising: ll("mid", "low")}, Fails, "in the mean: mid is 3, low is 2, short by 1; seed 1: mid is 2, low is 1, short by 1"},
		{"equal is no order", Order{Rising: ll("mid", "mid")}, Fails, "short by 0"},
		{"order broken in one seed", Order{Rising: ll("four", "dent")}, Fails, "seed 2: four is 2, dent is 1.9, short by 0.1"},
		{"order broken in one seed, which the mean may be too", Order{Rising: ll("low", "cross")}, Undecided, "low is 2, cross is 34.8: 3 seeds, and from seed to seed it differs by 55.605"},
		{"order that the mean may not have", Order{Rising: ll("low", "wide"), Margin: 4}, Undecided, "low is 2, wide is 10: 3 seeds, and from seed to seed it differs by 4"},
		{"one step falls, another may", Order{Rising: ll("mid", "low", "cross")}, Fails, "in the mean: mid is 3, low is 2, short by 1; seed 1: mid is 2, low is 1, short by 1; seed 2: mid is 3, low is 2, short by 1; seed 3: mid is 4, low is 3, short by 1"},
		{"order of common seeds", Order{Rising: ll("low", "one"), Margin: -40}, Holds, "for 1 seed"},
		{"order of no common seed", Order{Rising: ll("one", "other")}, NotRun, "no seed of which all of them were measured"},
		{"order, diverged", Order{Rising: ll("low", "gone")}, Fails, "gone diverged"},
		{"order, not run", Order{Rising: ll("low", "empty")}, NotRun, "no ll of empty"},

		{"worse", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"mid", "far"}, By: 1}, Holds, "by at least 1"},
		{"not worse enough", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"mid"}, By: 1.5}, Fails, "low is 2, mid is 3, short by 0.5"},
		{"worse where low is good", Worse{Measure: "ll", Bad: []string{"far"}, Than: []string{"mid", "low"}, By: 2, LowIsGood: true}, Holds, "by at least 2"},
		{"better, where low is good", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"far"}, By: 1, LowIsGood: true}, Fails, "short by 4"},
		{"equal is not worse", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"low"}}, Fails, "low is 2, low is 2, short by 0"},
		{"diverged is worse", Worse{Measure: "ll", Bad: []string{"gone", "low"}, Than: []string{"mid"}, By: 1}, Holds, "by at least 1; gone diverged"},
		{"all diverged", Worse{Measure: "ll", Bad: []string{"gone"}, Than: []string{"mid"}, By: 1}, Holds, "gone diverged"},
		{"one seed diverged, others are good", Worse{Measure: "ll", Bad: []string{"partly"}, Than: []string{"mid"}, By: 1}, Fails, "partly is 9, mid is 3.5, short by 6.5; partly diverged (seed 1)"},
		{"one seed diverged, others are bad", Worse{Measure: "ll", Bad: []string{"gone", "partly"}, Than: []string{"top"}, By: 0.5}, Holds, "by at least 4.25; gone diverged; partly diverged (seed 1)"},
		{"one seed of the good one diverged", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"partly"}, By: 1}, Fails, "partly diverged (seed 1)"},
		{"diverged, and another not run", Worse{Measure: "ll", Bad: []string{"empty", "gone"}, Than: []string{"mid"}, By: 1}, NotRun, "no ll of empty"},
		{"the good one diverged", Worse{Measure: "ll", Bad: []string{"low"}, Than: []string{"gone"}, By: 1}, Fails, "gone diverged"},
		{"worse, not run", Worse{Measure: "ll", Bad: []string{"empty"}, Than: []string{"mid"}, By: 1}, NotRun, "no ll of empty"},

		{"bound", Bound{ll("low", "mid"), math.Inf(-1), 3}, Holds, "all 2"},
		{"bound of one", Bound{ll("low"), 2, inf}, Holds, "2"},
		{"above a bound", Bound{ll("low", "mid"), math.Inf(-1), 2.5}, Fails, "mid: 3 (3 seeds), too high by 0.5"},
		{"below a bound", Bound{ll("low", "mid"), 2.5, inf}, Fails, "low: 2 (3 seeds), too low by 0.5"},
		{"bound, not run", Bound{ll("empty"), 0, inf}, NotRun, "no ll of empty"},

		{"clear", Clear{v("low"), v("one"), 2}, Undecided, "2 and 10, of 1 seed that both have: want two"},
		{"clear of no common seed", Clear{v("one"), v("other"), 2}, NotRun, "no seed of which all of them were measured"},
		{"clear of common seeds", Clear{v("low"), v("late"), 2}, Holds, "1.5 and 5.5, apart by 4, which is 5.7 sd"},
		{"clear by 2 sd", Clear{v("low"), v("far"), 2}, Holds, "2 and 5, apart by 3, which is 3 sd"},
		{"clear by no more than 3 sd", Clear{v("low"), v("far"), 3}, Fails, "apart by 3, which is 3 sd"},
		{"equal is not clear", Clear{v("low"), v("low"), 0}, Fails, "apart by 0"},
		{"not clear", Clear{v("low"), v("far"), 3.5}, Fails, "apart by 3, which is 3 sd"},
		{"clear of what varies more", Clear{v("low"), v("wide"), 2}, Fails, "2 and 10, apart by 8, which is 1.6 sd"},
		{"clear the other way", Clear{v("far"), v("low"), 2}, Fails, "5 and 2, apart by -3"},
		{"clear, not run", Clear{v("low"), v("empty"), 2}, NotRun, "no ll of empty"},
		{"clear, diverged", Clear{v("low"), v("gone"), 2}, Fails, "gone diverged (seed 1)"},
		{"gap", Gap{v("mid"), v("low"), 0.5, 1.5}, Holds, "1 (3 seeds)"},
		{"gap too small", Gap{v("mid"), v("low"), 2, 3}, Fails, "too low by 1"},
		{"gap the other way", Gap{v("low"), v("mid"), 0.5, 1.5}, Fails, "-1 (3 seeds), too low by 1.5"},
		{"ratio", Ratio{v("one"), v("low"), 30}, Holds, "5 (1 seed)"},
		{"ratio too large", Ratio{v("far"), v("wide"), 0.25}, Fails, "0.5 (3 seeds), too high by 0.25"},

		{"line", Linear{Of: Rows("ms", "x0", "x1", "x5", "x10"), X: []float64{0, 1, 5, 10}, Within: 0.05}, Holds, "slope 1.9952, start 10.044; at 1 it is off by 0.50238 %"},
		{"no line", Linear{Of: Rows("ms", "x0", "x1", "x5", "bent"), X: []float64{0, 1, 5, 10}, Within: 0.1}, Fails, "it is off by"},
		{"no line below 0", Linear{Of: Rows("bias", "minus", "g0", "minus"), X: []float64{0, 1, 2}, Within: 0.1}, Fails, "it is off by"},
		{"line through 0", Linear{Of: Rows("bias", "b0", "b1", "b2"), X: []float64{0, 1, 2}, Within: 0.1}, Holds, "slope 1, start 0; at 0 it is off by 0 %"},
		{"no line from 0 on", Linear{Of: Rows("bias", "b1", "b0", "b1"), X: []float64{-1, 0, 1}, Within: 0.1}, Fails, "off by"},
		{"geometric", Linear{Of: Rows("bias", "g0", "g1", "g2", "g3"), X: []float64{0, 1, 2, 3}, Log: true, Within: 1e-9}, Holds, "slope -0.69315"},
		{"not geometric", Linear{Of: Rows("bias", "g0", "g2", "g1"), X: []float64{0, 1, 2}, Log: true, Within: 0.1}, Fails, "off by"},
		{"logarithm of what is negative", Linear{Of: Rows("bias", "g0", "g1", "minus"), X: []float64{0, 1, 2}, Log: true, Within: 0.1}, Fails, "NaN"},
	} {
		got := c.check.Judge(table)
		if got.State != c.state || !strings.Contains(got.Detail, c.want) {
			t.Errorf("%s: %s: %v, %q; want %v, %q", c.name, got.Claim, got.State, got.Detail, c.state, c.want)
		}
	}
}

// TestSeeds: a number of two rows is of the seeds that both have; and where it differs from
// seed to seed by more than it is far from the end of what is claimed, nothing is decided.
func TestSeeds(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	table := Table{
		"ebm": row("f", 10, 12, 8), "more": row("f", 13.8), "fewer": row("f", 11), "far": row("f", 50), "third": row("f", nan, nan, 3),
		"near": row("f", 10.5, 12.4, 8.3), "apart": row("f", 9, 14, 8), "alone": row("g", 1), "double": row("g", 1.2),
		"other": row("f", nan, 3), "quiet": row("q", 10, 10.1, 9.9), "wild": row("q", 1, 100, 1000), "single": row("q", 12),
	}
	table["ebm"].Values["h"], table["near"].Values["h"] = row("h", 1, 1).Values["h"], row("h", 0, 1).Values["h"]
	table["far"].Values["h"] = row("h", 0, 0).Values["h"]
	table["wild"].Values["h"], table["apart"].Values["h"] = row("h", 1, 1, 1).Values["h"], row("h", 0.1, 1, 1.9).Values["h"]
	v := func(row string) Value { return Value{row, "f"} }
	g := func(row string) Value { return Value{row, "g"} }
	q := func(row string) Value { return Value{row, "q"} }
	for _, c := range []struct {
		name  string
		check Check
		state State
		want  string
	}{
		{"the common seed alone", Ratio{v("more"), v("ebm"), 1.05}, Undecided, "1.38: 1 seed, and seeds of apart differ by 31.1 %"},
		{"near the end", Ratio{v("fewer"), v("ebm"), 1.05}, Undecided, "1.1: 1 seed, and seeds of apart differ by 31.1 %"},
		{"far above", Ratio{v("far"), v("ebm"), 1.05}, Fails, "5 (1 seed), too high by 3.95"},
		{"far below", Ratio{v("third"), v("ebm"), 1.05}, Holds, "0.375 (1 seed)"},
		{"the difference of a common seed", Gap{v("more"), v("ebm"), 0, inf}, Undecided, "3.8: 1 seed, and seeds of apart differ by 31.1 %"},
		{"seeds that move together", Gap{v("near"), v("ebm"), 0, 1}, Holds, "0.4 (3 seeds)"},
		{"seeds that do not", Gap{v("apart"), v("ebm"), 0, 3}, Undecided, "0.33333: 3 seeds, and from seed to seed it differs by 1.5275"},
		{"no common seed", Gap{v("third"), v("more"), 0, 3}, NotRun, "no seed of which all of them were measured"},
		{"nobody knows how much seeds differ", Ratio{g("double"), g("alone"), 1.1}, Fails, "1.2 (1 seed), too high by 0.1"},
		{"other rows know", Ratio{v("fewer"), v("more"), 0.9}, Undecided, "0.7971: 1 seed, and seeds of apart differ by 31.1 %"},
		{"what seeds of one row say is not said of another", Gap{q("single"), q("quiet"), 0, 3}, Undecided, "2: 1 seed, and seeds of wild differ by 150 %"},
		{"an order of one seed", Order{Rising: []Value{v("ebm"), v("fewer")}}, Undecided, "ebm is 10, fewer is 11: 1 seed, and seeds of apart differ by 31.1 %"},
		{"an order that is far apart", Order{Rising: []Value{v("ebm"), v("far")}}, Holds, "for 1 seed"},
		{"one that is far apart the other way", Order{Rising: []Value{v("far"), v("ebm"), v("fewer")}}, Fails, "seed 1: far is 50, ebm is 10, short by 40"},
		{"worse by one seed", Worse{Measure: "f", Bad: []string{"fewer"}, Than: []string{"more"}}, Undecided, "fewer is 11, more is 13.8: 1 seed, and seeds of apart differ by 31.1 %"},
		{"worse by less than seeds differ", Worse{Measure: "f", Bad: []string{"apart"}, Than: []string{"ebm"}, LowIsGood: true}, Undecided, "apart is 10.333, ebm is 10: 3 seeds, and from seed to seed it differs by 1.5275"},
		{"worse by the common seeds", Worse{Measure: "f", Bad: []string{"ebm"}, Than: []string{"third"}, By: 0.2, LowIsGood: true}, Holds, "by at least 5"},
		{"better than one for certain", Worse{Measure: "f", Bad: []string{"ebm"}, Than: []string{"fewer", "far"}, LowIsGood: true}, Fails, "ebm is 10, far is 50, short by 40"},
		{"worse, and no common seed", Worse{Measure: "f", Bad: []string{"third"}, Than: []string{"ebm", "more"}}, NotRun, "no seed of which all of them were measured: third and more"},
		{"worse, and near as much as is claimed", Worse{Measure: "f", Bad: []string{"near"}, Than: []string{"ebm"}, By: 0.45, LowIsGood: true}, Undecided, "near is 10.4, ebm is 10: 3 seeds, and from seed to seed it differs by 0.1"},
		{"both of them differ", Ratio{v("fewer"), v("ebm"), 0.3}, Undecided, "1.1: 1 seed, and seeds of apart differ by 31.1 %"},
		{"a seed of 0 below the line", Ratio{Value{"ebm", "h"}, Value{"near", "h"}, 3}, Undecided, "2: 2 seeds, and from seed to seed it differs by 2.8284"},
		{"nothing below the line", Ratio{Value{"ebm", "h"}, Value{"far", "h"}, 3}, Undecided, "+Inf: 2 seeds, and from seed to seed it differs by NaN"},
		{"a ratio whose seeds' ratios differ more", Ratio{Value{"wild", "h"}, Value{"apart", "h"}, 4}, Holds, "1 (3 seeds)"},
		{"an order of one seed of many", Order{Rising: []Value{g("alone"), g("double")}}, Holds, "for 1 seed"},
	} {
		if got := c.check.Judge(table); got.State != c.state || got.Detail != c.want {
			t.Errorf("%s: %s: %v, %q; want %v, %q", c.name, got.Claim, got.State, got.Detail, c.state, c.want)
		}
	}
	nought := Table{"zero": row("f", -0.76, -0.54, 0.6), "some": row("f", 3, 1, 2), "low": row("f", 7174), "high": row("f", 8022), "close": row("f", 7175), "one": row("f", -0.3)}
	for _, c := range []struct {
		name  string
		check Check
		state State
		want  string
	}{
		{"rows near 0 say little of large ones", Ratio{v("low"), v("high"), 1.01}, Holds, "0.89429 (1 seed)"},
		{"they say by how much, not by which part", Order{Rising: []Value{v("low"), v("close")}}, Undecided, "low is 7174, close is 7175: 1 seed, and seeds of some differ by 1"},
		{"and say it of themselves", Order{Rising: []Value{v("zero"), v("one")}}, Undecided, "zero is -0.76, one is -0.3: 1 seed, and seeds of zero differ by 312.9 %"},
	} {
		if got := c.check.Judge(nought); got.State != c.state || got.Detail != c.want {
			t.Errorf("%s: %s: %v, %q; want %v, %q", c.name, got.Claim, got.State, got.Detail, c.state, c.want)
		}
	}
	means := Table{"a": row("f", 1, 1, 100), "b": row("f", 2, 2)}
	if got := (Order{Rising: Rows("f", "a", "b")}).Judge(means); got.State != Holds {
		t.Errorf("a seed that one row lacks counts in an order: %s", got.Detail)
	}
}

// Claims say all that is claimed.
func TestClaims(t *testing.T) {
	for want, c := range map[string]Check{
		"fisher of dsm is -5885 ± 10":                             Near{Value{"dsm", "fisher"}, Number{Value: -5885, Tol: 10}},
		"ll of a is 0.29 to 0.33":                                 Near{Value{"a", "ll"}, Number{Value: 0.29, To: 0.33}},
		"ll: a < b, each by at least 0.5":                         Order{Rising: Rows("ll", "a", "b"), Margin: 0.5},
		"k-300: n-20 < n-10":                                      Order{Rising: Measures("k-300", "n-20", "n-10")},
		"x of a < y of b":                                         Order{Rising: []Value{{"a", "x"}, {"b", "y"}}},
		"ll of a worse than of b, c by at least 2":                Worse{Measure: "ll", Bad: []string{"a"}, Than: []string{"b", "c"}, By: 2},
		"ll of a, b at most 0.69315":                              Bound{Rows("ll", "a", "b"), math.Inf(-1), math.Ln2},
		"ll of a at least 2":                                      Bound{Rows("ll", "a"), 2, math.Inf(1)},
		"ll of a from 1 to 2":                                     Bound{Rows("ll", "a"), 1, 2},
		"ll of a above ll of b by 58 to 95":                       Gap{Value{"a", "ll"}, Value{"b", "ll"}, 58, 95},
		"ms of a at most 3.5 times ms of b":                       Ratio{Value{"a", "ms"}, Value{"b", "ms"}, 3.5},
		"ms of a, b linear over [0 1] within 15 %":                Linear{Of: Rows("ms", "a", "b"), X: []float64{0, 1}, Within: 0.15},
		"log of bias-0, bias-1 of k linear over [0 1] within 0.3": Linear{Of: Measures("k", "bias-0", "bias-1"), X: []float64{0, 1}, Log: true, Within: 0.3},
	} {
		if got := c.Judge(Table{}); got.Claim != want || got.State != NotRun {
			t.Errorf("got %q, %v; want %q, not run", got.Claim, got.State, want)
		}
	}
}

// Seeds that do not differ have no deviation to count in.
func TestClearOfEqualSeeds(t *testing.T) {
	table := Table{"flat": row("ll", 1, 1), "even": row("ll", 2, 2)}
	v := Clear{Value{"flat", "ll"}, Value{"even", "ll"}, 2}.Judge(table)
	if v.State != Holds || v.Detail != "1 and 2, apart by 1" {
		t.Errorf("got %v, %q", v.State, v.Detail)
	}
}

// Two standard errors do not tell, nor does an error that is no number; none tells all.
func TestTells(t *testing.T) {
	for _, c := range []struct {
		se, far float64
		want    bool
	}{{1, 2, false}, {1, 2.01, true}, {0, 0, true}, {math.NaN(), 5, false}, {math.Inf(1), 5, false}} {
		if got := (doubt{se: c.se}).tells(c.far); got != c.want {
			t.Errorf("%v from an end with an error of %v: %v", c.far, c.se, got)
		}
	}
}

// What has a tolerance or is a range is judged, and what is but stated is not.
func TestJudged(t *testing.T) {
	for n, want := range map[Number]bool{{Value: 1}: false, {Value: 1, Tol: 0.1}: true, {Value: 1, To: 2}: true} {
		if got := n.Judged(); got != want {
			t.Errorf("%v is judged: %v", n, got)
		}
	}
	if v := inside("x", Spread{N: 1, Mean: math.NaN()}, math.Inf(-1), math.Inf(1)); v.State != Fails {
		t.Errorf("NaN lies inside: %v", v)
	}
}

func TestDigits(t *testing.T) {
	for want, v := range map[string]float64{"0": 0, "-5885.1": -5885.1, "0.69315": math.Ln2, "129.23": 129.2301, "1.05e+06": 1.05e6, "12346": 12345.6, "2e-07": 2e-7, "-0.27": -0.27} {
		if got := digits(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}
