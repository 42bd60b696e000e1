package main

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/run/picture"
	"ebtrain/trainer/run/rundir"
)

func TestParse(t *testing.T) {
	o, err := parse(strings.Fields("a b -x hours --columns lower,step_ms --out c.png --from-step 7 --whole"), io.Discard)
	if err != nil || len(o.runs) != 2 || o.x != hours || len(o.columns) != 2 || o.out != "c.png" || o.from != 7 || !o.whole {
		t.Errorf("got %+v, %v", o, err)
	}
	if o, err := parse([]string{"runs/a"}, io.Discard); err != nil || o.out != "runs/a/curves.png" || o.x != steps || o.columns != nil {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, c := range []struct{ args, want string }{
		{"", "want at least one run"},
		{"a b", "--out is required for several runs"},
		{"a --out c.jpg", "--out c.jpg: want a name that ends in .png"},
		{"a --columns=", "--columns is empty"},
		{"a --x epochs", `unknown --x "epochs"`},
		{"a --from-step -1", "want --from-step of at least 0"},
	} {
		_, err := parse(strings.Fields(c.args), io.Discard)
		if usage, ok := errors.AsType[*cliflag.UsageError](err); !ok || !strings.HasPrefix(usage.Error(), c.want) {
			t.Errorf("%q: got %v, want a usage error that begins with %q", c.args, err, c.want)
		}
	}
}

// made is a run directory with lines of metrics.
func made(t *testing.T, name string, records ...rundir.Record) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	d, err := rundir.Create(dir, rundir.Config{World: 1}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Metrics(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := m.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(m.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// falls are n lines, a step each, half an hour apart, of a loss that falls from n to 1.
func falls(n int) []rundir.Record {
	out := make([]rundir.Record, n)
	for i := range out {
		out[i] = rundir.Record{Step: int64(i), Samples: int64(10 * (i + 1)), Time: 1e9 + 1800*float64(i), StepMS: 2, Losses: map[string]float64{"lower": float64(n - i)}}
	}
	return out
}

func curves(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), args, &out, io.Discard)
	return out.String(), err
}

// TestRun draws one run into its folder, and draws it again, since that is a picture.
func TestRun(t *testing.T) {
	dir := made(t, "mine", falls(40)...)
	for range 2 {
		out, err := curves(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join(strings.Fields("column run steps first least of step last last tenth no number lower mine 0-39 40 1 39 1 2.5 "+dir+"/curves.png"), " ")
		if got := strings.Join(strings.Fields(out), " "); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if n := tally(load(t, dir+"/curves.png"), picture.Hue(0, 1)); n < 100 {
		t.Errorf("the curve has %d points", n)
	}
}

// TestRow: the last tenth of few lines is the last, and what is no number is counted beside
// what is.
func TestRow(t *testing.T) {
	for want, h := range map[string]history{
		"lower a 5-8 4 1 8 1 1":   valued("a", 4, 3, 2, 1),
		"lower a 5-7 4 2 7 2 2 1": valued("a", 4, math.NaN(), 2),
	} {
		if got := strings.Join(strings.Fields(h.row("lower")), " "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	dir, empty := made(t, "mine", falls(5)...), made(t, "empty")
	old := falls(5)
	for i := range old {
		old[i].Time = 0
	}
	text := filepath.Join(dir, "text.png")
	if err := os.WriteFile(text, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{t.TempDir()}, "is not a run directory, the --out of a train run: it has no config.json"},
		{[]string{empty}, "metrics.jsonl has no lines yet"},
		{[]string{dir, "--from-step", "5"}, "is of step 4"},
		{[]string{dir, "--columns", "lover"}, "did you mean lower?"},
		{[]string{made(t, "old", old...), "--x", "hours"}, "want --x steps or samples"},
		{[]string{made(t, "none", rundir.Record{Step: 3}), "--out", text}, "no run has logged a loss"},
		{[]string{dir, "--out", text}, "give another name"},
		{[]string{dir, "--out", filepath.Join(dir, "no", "folder.png")}, "give another place with --out FILE.png"},
	} {
		if _, err := curves(t, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q in it", c.args, err, c.want)
		}
	}
	if b, err := os.ReadFile(text); err != nil || string(b) != "precious" {
		t.Errorf("what was no picture is %q now, %v", b, err)
	}
}

// TestSeveral: runs beside each other have colours of their own, each in the diagrams of
// what it has logged, and a column without numbers has a diagram, too.
func TestSeveral(t *testing.T) {
	other := falls(300)
	for i := range other {
		other[i].Losses = map[string]float64{"lower": float64(i), "torn": math.NaN()}
	}
	a, b, file := made(t, "a", falls(300)...), made(t, "b", other...), filepath.Join(t.TempDir(), "both.png")
	out, err := curves(t, a, b, "--out", file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "torn"); n != 1 || !strings.Contains(out, "300\n") {
		t.Errorf("want one row of torn, with 300 values that are no numbers, got\n%s", out)
	}
	m := load(t, file)
	for i := range 2 {
		if n := tally(m, picture.Hue(i, 2)); n < 100 {
			t.Errorf("run %d has %d points", i, n)
		}
	}
}

// TestPlaces: lines stand at their step, samples, or hours since the run's first line,
// whatever is the first that is drawn.
func TestPlaces(t *testing.T) {
	dir := made(t, "mine", falls(4)...)
	for x, want := range map[axis][]float64{steps: {2, 3}, samples: {30, 40}, hours: {1, 1.5}} {
		runs, err := options{runs: []string{dir}, x: x, from: 2}.read()
		if err != nil {
			t.Fatal(err)
		}
		xs, ys, _ := runs[0].column("lower", x)
		if len(xs) != 2 || xs[0] != want[0] || xs[1] != want[1] || ys[0] != 2 || ys[1] != 1 {
			t.Errorf("%s: %v %v, want %v", x, xs, ys, want)
		}
		if ms, v, _ := runs[0].column("step_ms", x); len(ms) != 2 || v[0] != 2 {
			t.Errorf("step_ms: %v %v", ms, v)
		}
	}
}

// TestExtremes: any numbers have a picture.
func TestExtremes(t *testing.T) {
	for _, values := range [][]float64{{math.MaxFloat64, -math.MaxFloat64}, {5e-324, 0}, {1, 1 + 1e-15}, {1e300}, {math.Inf(1), 2}} {
		var lines []rundir.Record
		for i, v := range values {
			lines = append(lines, rundir.Record{Step: int64(i), Losses: map[string]float64{"lower": v}})
		}
		if out, err := curves(t, made(t, "mine", lines...)); err != nil {
			t.Errorf("%v: %v\n%s", values, err, out)
		}
	}
}

func TestShortest(t *testing.T) {
	for want, paths := range map[string]string{
		"a b":         "runs/a runs/b",
		"c d":         "c d",
		"a/run b/run": "x/a/run x/b/run/",
		"run b/run":   "run b/run",
		"ca a":        "x/ca x/a",
		"a a":         "a a",
		"a b/a":       "/a /b/a",
	} {
		if got := strings.Join(shortest(strings.Fields(paths)), " "); got != want {
			t.Errorf("%s: %s, want %s", paths, got, want)
		}
	}
}

func load(t *testing.T, file string) image.Image {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it is only read
	m, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// tally is how many points of a picture have a colour.
func tally(m image.Image, c color.RGBA) (n int) {
	for y := m.Bounds().Min.Y; y < m.Bounds().Max.Y; y++ {
		for x := m.Bounds().Min.X; x < m.Bounds().Max.X; x++ {
			if color.RGBAModel.Convert(m.At(x, y)) == c {
				n++
			}
		}
	}
	return n
}
