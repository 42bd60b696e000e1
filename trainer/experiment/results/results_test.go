package results

import (
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/measure"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/run/rundir"
)

var update = flag.Bool("update", false, "write the golden RESULTS.md anew")

var began = time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)

// made are experiments of which cells are made by hand.
func made() []plan.Experiment {
	expect := map[string]judge.Number{"ll": {Value: 124, Tol: 2.5}, "fisher": {Value: -5780}}
	return []plan.Experiment{
		{
			Name: "faces", About: "Faces | by several methods.", Source: "the paper, Table 1", Seeds: []uint64{1, 2, 3},
			Columns: []string{"ll", "fisher", "cpu-s"},
			Rows: []plan.Row{
				{Name: "dsm", Preset: "sm-frey"},
				{Name: "n-5", Preset: "bism-frey", Flags: map[string]string{"unroll": "5"}, Expect: expect},
				{Name: "wild", Preset: "sm-frey", Flags: map[string]string{"lr": "1"}, KnownBad: true},
				{Name: "late", Preset: "sm-frey", Flags: map[string]string{"lr": "2"}},
			},
			Checks: []judge.Check{
				judge.Order{Rising: judge.Rows("ll", "n-5", "dsm")},
				judge.Order{Rising: judge.Rows("fisher", "dsm", "n-5")},
				judge.Worse{Measure: "ll", Bad: []string{"wild"}, Than: []string{"dsm"}, By: 10},
				judge.Order{Rising: judge.Rows("ll", "late", "dsm")},
			},
			Figures:  []plan.Figure{{File: "ll", Title: "LL", X: "steps", Y: "nats", Curve: "ll", LogX: true}, {File: "none", Title: "Nothing", Curve: "none"}},
			Pictures: []plan.Picture{{Title: "Density", Glob: "density-*.png"}, {Title: "Lines", Glob: "lines.txt"}},
		},
		{Name: "absent", About: "Nothing was run.", Seeds: []uint64{1}, Columns: []string{"ll"}, Rows: []plan.Row{{Name: "a"}}},
		{Name: "tried", About: "Tried out.", Seeds: []uint64{1}, Columns: []string{"sum"}, Rows: []plan.Row{{Name: "a"}},
			Checks: []judge.Check{judge.Bound{Of: judge.Rows("sum", "a"), Lo: 7, Hi: math.Inf(1)}}},
	}
}

// folder holds cells of all kinds.
func folder(t *testing.T) string {
	root := t.TempDir()
	put := func(experiment, row string, seed uint64, m *cell.Measured) {
		c := cell.Cell{Root: root, Experiment: experiment, Row: row, Seed: seed}
		b := cell.Begun{Commit: "c0ffee", Started: began, Pieces: []cell.Piece{{Program: "train", Ended: "exit 75"}}}
		if err := c.Begin(b); err != nil {
			t.Fatal(err)
		}
		if m == nil {
			return
		}
		if m.Commit == "" {
			m.Commit = "c0ffee"
		}
		m.Machine, m.Ended, m.Steps = "Some processor, 2 cores", began.Add(time.Duration(seed)*time.Minute), 20
		m.Command = [][]string{{"train", "--preset=x", fmt.Sprintf("--seed=%d", seed), "--out=" + c.Dir()}, {"evaluate", "--json", "--run=runs/" + row}}
		if err := c.Finish(*m); err != nil {
			t.Fatal(err)
		}
	}
	measured := func(ll, fisher, cpu float64, curve ...measure.Point) *cell.Measured {
		return &cell.Measured{CPU: cpu + 10, Train: cpu, Values: map[string]float64{"ll": ll, "fisher": fisher, "cpu-s": cpu}, Curves: map[string][]measure.Point{"ll": curve}}
	}
	put("faces", "dsm", 1, measured(129, -5885, 30, measure.Point{X: 10, Y: 100}, measure.Point{X: 20, Y: 120}))
	put("faces", "dsm", 2, measured(130, -5883, 31, measure.Point{X: 10, Y: 102}, measure.Point{X: 20, Y: 122}))
	put("faces", "dsm", 3, nil)
	put("faces", "n-5", 1, compared(measured(127, -5780.4, 300), 8, "blurred"))
	put("faces", "n-5", 2, compared(measured(130.5, -5790, 310), 9, "blurred"))
	put("faces", "n-5", 4, &cell.Measured{Broken: &cell.Broken{Program: "train", Ended: "killed by SIGKILL", Line: "step 7/20"}, CPU: 1})
	put("faces", "wild", 1, &cell.Measured{Broken: &cell.Broken{Program: "train", Ended: "exit 1", Line: "training diverged: upper is NaN at step 3", Diverged: true}, CPU: 2, Train: 2})
	old := measured(1, 1, 1)
	old.Commit = "0ld"
	put("faces", "n-5", 0, old) // of an earlier minute than the others of its row
	put("faces", "dsm", 5, compared(measured(129.5, -5884, 32), 99, "blurred", "noise"))
	put("tried", "a", 1, &cell.Measured{Values: map[string]float64{"sum": 6}, TriedOut: true, Notes: []string{"too few steps: it has 20, want 400"}, CPU: 0.25})

	dir := cell.Cell{Root: root, Experiment: "faces", Row: "dsm", Seed: 1}.Dir()
	ending := map[string]string{".txt": "\na second line\n"}
	for _, name := range []string{"density-1.png", "density-2.png", "lines.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name+ending[filepath.Ext(name)]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// compared adds a comparison of samples with data to a cell: their number, and the sets
// that are no worse.
func compared(m *cell.Measured, samples float64, blind ...string) *cell.Measured {
	m.Quality = map[string]any{"rows": []any{map[string]any{
		"name": "frechet", "title": "Fréchet distance", "better": "lower", "samples": samples, "floor": 0.5,
		"controls": map[string]any{"noise": 90, "blurred": 6 + samples/100}, "blind": blind,
	}}}
	return m
}

// TestRealSamples: a number of real samples that is another one in each cell goes from the
// least to the most; near ones have a mean.
func TestRealSamples(t *testing.T) {
	for want, floors := range map[string][]rundir.Number{"1 to 2": {1, 2, 1.5}, "1.02": {1, 1.02, 1.04}} {
		b := beside{values: map[string][]float64{}, blind: map[string][]string{}}
		for i := range floors {
			b.add("row", &floors[i], nil, nil)
		}
		if got := b.text(realSamples); got != want {
			t.Errorf("%v are %s, want %s", floors, got, want)
		}
	}
}

// TestBadQuality: what no comparison is, is named.
func TestBadQuality(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	s.finished[0].status.Measured.Quality = map[string]any{"rows": 7}
	if err := Write(filepath.Join(t.TempDir(), "a.md"), []*Sheet{s}, 0); err == nil || !strings.HasPrefix(err.Error(), "faces/dsm seed 1: what samples were compared with cannot be read: ") {
		t.Errorf("got %v", err)
	}
}

// TestNotFinite: numbers that JSON has not stand in the table of what samples are beside.
func TestNotFinite(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	s.finished[0].status.Measured.Quality = map[string]any{"rows": []any{map[string]any{
		"name": "kid", "title": "KID", "better": "lower", "floor": "NaN", "controls": map[string]any{"noise": "Inf"},
	}}}
	file := filepath.Join(t.TempDir(), "a.md")
	if err := Write(file, []*Sheet{s}, 0); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "| KID | lower | NaN |") || !strings.Contains(string(text), "+Inf |") {
		t.Errorf("%v in\n%s", err, text)
	}
}

// TestCommits: the newest cell of a row decides of which commit its cells are; where
// times are measured, the newest of all.
func TestCommits(t *testing.T) {
	e := plan.Experiment{Name: "x", Seeds: []uint64{1, 2}, Rows: []plan.Row{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	root := t.TempDir()
	for i, f := range []struct {
		row    string
		seed   uint64
		commit string
	}{{"a", 1, "first"}, {"a", 2, "first"}, {"b", 1, "first"}, {"b", 2, "second"}, {"c", 1, "second"}} {
		c := cell.Cell{Root: root, Experiment: e.Name, Row: f.row, Seed: f.seed}
		if err := c.Begin(cell.Begun{Commit: f.commit, Started: began}); err != nil {
			t.Fatal(err)
		}
		if err := c.Finish(cell.Measured{Commit: f.commit, Ended: began.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	for alone, want := range map[bool]struct{ made, left string }{
		false: {"commit first (a) and commit second (b, c)", "of commit first, left out: b seed 1; not begun: c seed 2"},
		true:  {"commit second", "of commit first, left out: a seed 1, 2; b seed 1; not begun: c seed 2"},
	} {
		e.Alone = alone
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		if left := strings.Join(s.left, "; "); s.made() != want.made || left != want.left {
			t.Errorf("times measured: %t: cells of %s without %s, want %s without %s", alone, s.made(), left, want.made, want.left)
		}
	}
}

// TestOtherData: cells of other data than the newest ones are no part of the results, in
// any row that is trained on the same data set; where data are not known, cells count.
func TestOtherData(t *testing.T) {
	own := &plan.DataSet{Name: "own"}
	e := plan.Experiment{Name: "x", Seeds: []uint64{1, 2}, Rows: []plan.Row{{Name: "a"}, {Name: "b"}, {Name: "c", Data: own}}}
	root := t.TempDir()
	for i, f := range []struct {
		row  string
		seed uint64
		data cell.Data
	}{
		{"a", 1, cell.Data{"train": "first"}}, {"a", 2, cell.Data{"train": "second", "svhn/test": "s"}},
		{"b", 1, cell.Data{"train": "first"}}, {"b", 2, nil}, {"c", 1, cell.Data{"train": "third"}}, {"c", 2, cell.Data{"train": "third"}},
	} {
		c := cell.Cell{Root: root, Experiment: e.Name, Row: f.row, Seed: f.seed}
		if err := c.Begin(cell.Begun{Started: began}); err != nil {
			t.Fatal(err)
		}
		if err := c.Finish(cell.Measured{Data: f.data, Ended: began.Add(time.Duration(i) * time.Minute)}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(root, e)
	if err != nil {
		t.Fatal(err)
	}
	var counted []string
	for _, f := range s.finished {
		counted = append(counted, fmt.Sprintf("%s-%d", f.Row, f.Seed))
	}
	if got, want := strings.Join(counted, " "), "a-1 b-1 b-2 c-1 c-2"; got != want {
		t.Errorf("%s are counted, want %s", got, want)
	}
	if got, want := strings.Join(s.left, "; "), "of other data (train second), left out: a seed 2"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

// TestTriedOut: where any cell is whole, those that were only tried out are named and left
// out, however new they are, and the claims are judged.
func TestTriedOut(t *testing.T) {
	e := plan.Experiment{
		Name: "x", Seeds: []uint64{1}, Columns: []string{"ll"}, Rows: []plan.Row{{Name: "a"}, {Name: "b"}},
		Checks: []judge.Check{judge.Bound{Of: judge.Rows("ll", "a"), Lo: 0, Hi: 5}},
	}
	root := t.TempDir()
	put := func(row string, seed uint64, commit string, ll float64, steps int64) {
		c := cell.Cell{Root: root, Experiment: e.Name, Row: row, Seed: seed}
		m := cell.Measured{Commit: commit, Data: cell.Data{"train": commit}, Steps: steps, TriedOut: steps < 9, Ended: began.Add(time.Duration(ll) * time.Minute), Values: map[string]float64{"ll": ll}}
		if err := errors.Join(c.Begin(cell.Begun{Started: began}), c.Finish(m)); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 2, "new", 7, 2)
	put("b", 1, "new", 8, 3)
	for _, want := range []struct {
		summary, left string
		lines         []string
	}{
		{"x: 2 of 3 cells finished, only tried out", "not begun: a seed 1", []string{"**Only tried out, with 2 and 3 steps: nothing is judged.**"}},
		{"x: 1 of 3 cells finished; of 1 claims 1 hold, 0 fail, 0 are undecided, 0 are not run", "tried out with 2 steps, left out: a seed 2; tried out with 3 steps, left out: b seed 1",
			[]string{"| a |  | 1 | 1.00 |", "| b |  | not run |", "| ll of a from 0 to 5 | holds |"}},
	} {
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		if left := strings.Join(s.left, "; "); s.Summary() != want.summary || left != want.left {
			t.Errorf("%s without %s, want %s without %s", s.Summary(), left, want.summary, want.left)
		}
		file := filepath.Join(t.TempDir(), "a.md")
		if err := Write(file, []*Sheet{s}, 0); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		for _, line := range want.lines {
			if err != nil || !strings.Contains(string(text), line) {
				t.Errorf("%v, want %q in\n%s", err, line, text)
			}
		}
		put("a", 1, "old", 1, 9)
	}
}

// TestSomeDiverged: a mean of some seeds says of how many, and that the others diverged.
func TestSomeDiverged(t *testing.T) {
	e := plan.Experiment{Name: "x", Seeds: []uint64{1, 2, 3, 4, 5}, Columns: []string{"ll", "fisher"}, Rows: []plan.Row{{Name: "a"}}}
	root := t.TempDir()
	for _, seed := range e.Seeds {
		c := cell.Cell{Root: root, Experiment: e.Name, Row: "a", Seed: seed}
		m := cell.Measured{Ended: began, Values: map[string]float64{"ll": 1}}
		if seed > 2 {
			m.Values, m.Broken = nil, &cell.Broken{Program: "train", Ended: "exit 1", Line: "training diverged", Diverged: true}
		}
		if err := errors.Join(c.Begin(cell.Begun{Started: began}), c.Finish(m)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Load(root, e)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{}
	p.values(s)
	if want := "| a |  | 5 | 1.00 ± 0.00 (2 of 5; 3 diverged) | diverged |"; !strings.Contains(p.String(), want) {
		t.Errorf("want %q in\n%s", want, p.String())
	}
}

// TestGolden compares RESULTS.md of cells that were made by hand with the golden
// one.
func TestGolden(t *testing.T) {
	root := folder(t)
	var sheets []*Sheet
	var summaries []string
	for _, e := range made() {
		s, err := Load(root, e)
		if err != nil {
			t.Fatal(err)
		}
		sheets, summaries = append(sheets, s), append(summaries, s.Summary())
	}
	path := filepath.Join(root, "RESULTS.md")
	if err := Write(path, sheets, 0); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/RESULTS.md"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := "faces: 6 of 15 cells finished; of 5 claims 2 hold, 1 fail, 1 are undecided, 1 are not run\nabsent: 0 of 1 cells finished; of 0 claims 0 hold, 0 fail, 0 are undecided, 0 are not run\ntried: 1 of 1 cells finished, only tried out"; strings.Join(summaries, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(summaries, "\n"), want)
	}
	if b, err := os.ReadFile(filepath.Join(root, "RESULTS", "faces-dsm-density-2.png")); string(b) != "density-2.png" {
		t.Errorf("the newest picture: %q, %v", b, err)
	}
	checkPlot(t, filepath.Join(root, "RESULTS", "faces-ll.png"))
	if _, err := os.Stat(filepath.Join(root, "RESULTS", "faces-none.png")); err == nil {
		t.Error("a plot of nothing was drawn")
	}
}

func decoded(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := png.Decode(f)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// checkPlot looks for a line in a plot, and counts the points that are coloured.
func checkPlot(t *testing.T, file string) int {
	t.Helper()
	m := decoded(t, file)
	coloured := 0
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			r, g, b, _ := m.At(x, y).RGBA()
			if max(r, g, b)-min(r, g, b) > 0x4000 {
				coloured++
			}
		}
	}
	if coloured < 200 {
		t.Errorf("%d coloured points in the plot of one line", coloured)
	}
	return coloured
}

// TestBeside: a figure's other curve is drawn too.
func TestBeside(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.finished {
		if m := f.status.Measured; m.Curves != nil {
			m.Curves["above"] = []measure.Point{{X: 10, Y: 200}, {X: 20, Y: 300}}
		}
	}
	file := filepath.Join(t.TempDir(), "a.png")
	var coloured [2]int
	for i, beside := range []string{"", "above"} {
		if ok, err := s.plot(plan.Figure{Curve: "ll", Beside: beside}, file); !ok || err != nil {
			t.Fatal(ok, err)
		}
		coloured[i] = checkPlot(t, file)
	}
	if coloured[1] < coloured[0]+100 {
		t.Errorf("%d coloured points with one curve, %d with two", coloured[0], coloured[1])
	}
}

// TestLongNames: names of curves are drawn whole, however long, with a margin.
func TestLongNames(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	const long = "bidvl-with-a-name-that-tells-all-of-it"
	s.e.Rows[0].Name = long
	for i := range s.finished {
		if f := &s.finished[i]; f.Row == "dsm" {
			f.Row = long
		}
	}
	file := filepath.Join(t.TempDir(), "a.png")
	if ok, err := s.plot(plan.Figure{Curve: "ll"}, file); !ok || err != nil {
		t.Fatal(ok, err)
	}
	m := decoded(t, file)
	last := 0 // column that is not white
	for y := range m.Bounds().Dy() {
		for x := last; x < m.Bounds().Dx(); x++ {
			if r, _, _, _ := m.At(x, y).RGBA(); r < 0x8000 {
				last = x
			}
		}
	}
	if free := m.Bounds().Dx() - 1 - last; free < 2 || free > 40 {
		t.Errorf("%d columns are free beside the names", free)
	}
}

// TestMean: a curve is the mean of the seeds that have a point there.
func TestMean(t *testing.T) {
	s, err := Load(folder(t), made()[0])
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(s.mean("dsm", "ll")), "[{10 101} {20 121}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := positive([]measure.Point{{X: 0, Y: 1}, {X: 1, Y: -1}, {X: 1, Y: 1}}, plan.Figure{LogX: true, LogY: true}); len(got) != 1 {
		t.Errorf("on logarithmic axes: %v", got)
	}
}

func TestDecades(t *testing.T) {
	var labels []string
	for _, m := range decades(0.019, 1.5) {
		labels = append(labels, m.Label)
	}
	if got, want := strings.Join(labels, " "), "0.02 0.05 0.1 0.2 0.5 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := len(decades(2e-5, 1500)); got != 8 { // 10⁻⁴ … 10³
		t.Errorf("%d marks over eight decades", got)
	}
}

func TestDuration(t *testing.T) {
	for want, s := range map[string]float64{"0.2 s": 0.25, "12 s": 12.3, "119 s": 119.4, "2 min": 120, "113 min": 6800, "2.0 h": 7200} {
		if got := duration(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}
