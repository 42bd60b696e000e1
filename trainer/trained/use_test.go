package trained

import (
	"fmt"
	"image"
	"math"
	"slices"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/internal/toy"
	"ebtrain/trainer/model/chain"
	"ebtrain/trainer/model/nn"
)

// toyRun is a toy for samples of 1×1×w, with mean 0.5 and σ of 0.25.
func toyRun(t *testing.T, w int) (*Run, exec.Backend) {
	t.Helper()
	backend := ref.New()
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &Run{Path: "runs/a", Model: toy.Config{C: 1, H: 1, W: w}, Vars: backend.NewVars()}
	r.Settings.Algo = "toy"
	for name, v := range map[string]float64{"gauss.mean": 0.5, "gauss.log_sd": math.Log(0.25)} {
		x := exec.NewTensor(graph.T(graph.F32, w))
		for i := range w {
			x.SetAt(i, v)
		}
		if err := r.Vars.Set(name, x); err != nil {
			t.Fatal(err)
		}
	}
	return r, backend
}

// What does not fit is told with what would.
func TestFits(t *testing.T) {
	for _, tt := range []struct {
		c, h, w int // that the model takes
		name    string
		holds   data.Schema
		want    string
	}{
		{3, 32, 32, "shards/a", data.Schema{C: 3, H: 32, W: 32}, ""},
		{3, 32, 32, "shards/a", data.Schema{C: 1, H: 28, W: 20}, "shards/a holds pictures of 1×28×20, and the model of runs/a takes pictures of 3×32×32: make shards with mkshards --size 32 --channels 3"},
		{1, 28, 20, "shards/a", data.Schema{C: 1, H: 32, W: 32}, "make shards with mkshards --size 28x20 --channels 1"},
		{3, 28, 20, "synth:train=9", data.Schema{C: 3, H: 32, W: 32}, "synth:train=9 holds pictures of 3×32×32, and the model of runs/a takes pictures of 3×28×20: say synth:size=28x20"},
		{1, 32, 32, "synth", data.Schema{C: 3, H: 32, W: 32}, "takes pictures of 1×32×32: give a data set of pictures of 1×32×32"},
		{3, 32, 32, "checkerboard", data.Schema{C: 1, H: 1, W: 2}, "checkerboard holds points of 2 values, and the model of runs/a takes pictures of 3×32×32: give a data set of pictures of 3×32×32"},
		{1, 1, 2, "gauss:dim=3", data.Schema{C: 1, H: 1, W: 3}, "gauss:dim=3 holds points of 3 values, and the model of runs/a takes points of 2 values: say gauss:dim=2"},
		{1, 1, 2, "shards/a", data.Schema{C: 3, H: 32, W: 32}, "shards/a holds pictures of 3×32×32, and the model of runs/a takes points of 2 values: give a data set of points of 2 values"},
		{1, 1, 3, "checkerboard", data.Schema{C: 1, H: 1, W: 2}, "give a data set of points of 3 values"},
	} {
		r := &Run{Path: "runs/a", Model: toy.Config{C: tt.c, H: tt.h, W: tt.w}}
		err := r.fits(tt.name, tt.holds)
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v for %d×%d×%d: %v, want …%s", tt.holds, tt.c, tt.h, tt.w, err, tt.want)
		}
	}
}

// spoken is a model of sentences of these words.
type spoken struct {
	algo.Model
	words []string
}

func (s spoken) Takes() algo.Inputs { return algo.Inputs{Shape: graph.D(1, 1, 9), Words: s.words} }

// Sentences of any length fit if they are of the same words, in the same order: a token
// is a number.
func TestSentencesFit(t *testing.T) {
	r := &Run{Path: "runs/a", Model: spoken{words: append(data.ReservedWords(), "a", "b")}}
	for _, tt := range []struct {
		words []string
		ok    bool
	}{{[]string{"a", "b"}, true}, {[]string{"b", "a"}, false}, {[]string{"a", "c"}, false}, {[]string{"a", "b", "c"}, false}} {
		err := r.fits("shards/a", data.Schema{C: 1, H: 1, W: 5, Text: &data.Text{Words: append(data.ReservedWords(), tt.words...)}})
		if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "mkshards text --vocabulary") {
			t.Errorf("words %v: %v", tt.words, err)
		}
	}
}

// signed is a model whose samples are in [-1, 1]; those of a toy are in [0, 1].
type signed struct{ algo.Model }

func (u signed) Takes() algo.Inputs {
	in := u.Model.Takes()
	in.Range = loader.Symmetric
	return in
}

func TestFirst(t *testing.T) {
	r := &Run{Path: "runs/a", Model: toy.Config{C: 3, H: 8, W: 8}}
	const name = "synth:size=8,test=5"
	if _, err := r.Open("synth:size=16", "test"); err == nil || !strings.Contains(err.Error(), "takes pictures of 3×8×8") {
		t.Errorf("other sizes: %v", err)
	}
	x, err := r.First(t.Context(), name, "test", 3)
	if err != nil || len(x) != 3*3*8*8 {
		t.Fatalf("%d values, %v", len(x), err)
	}
	all, err := r.First(t.Context(), name, "test", 5)
	if err != nil || fmt.Sprint(all[:len(x)]) != fmt.Sprint(x) {
		t.Errorf("the first 3 of 5 are not the first 3 (%v)", err)
	}
	// In the model's range, whichever that is.
	inRange := func(r *Run) (least, most float32) {
		x, err := r.First(t.Context(), name, "test", 5)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Min(x), slices.Max(x)
	}
	c, d := inRange(r)
	a, b := inRange(&Run{Path: "runs/a", Model: signed{r.Model}})
	if near := func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-6 }; a >= 0 || !near(c, (a+1)/2) || !near(d, (b+1)/2) {
		t.Errorf("from %v to %v in [-1, 1], and from %v to %v in [0, 1]", a, b, c, d)
	}
	if _, err := r.First(t.Context(), name, "test", 6); err == nil || err.Error() != name+"/test holds 5 pictures, and 6 are asked for" {
		t.Errorf("6 of 5: %v", err)
	}
}

// Samples with given latents are where the latents say, and those without are
// another with another seed.
func TestDraw(t *testing.T) {
	r, backend := toyRun(t, 2)
	plan, err := r.Model.(algo.Conditional).SampleGiven(2)
	if err != nil {
		t.Fatal(err)
	}
	given := []float32{0, 1, -2, 4}
	seen := map[float64]bool{}
	for seed := range uint64(3) {
		x, err := r.Draw(t.Context(), backend, Draw{Plan: plan, Seed: seed, Given: given, Smaller: "--n"})
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range given {
			if d := math.Abs(x.At(i) - (0.5 + 0.25*float64(h))); !(d > 0 && d < 0.01) {
				t.Errorf("seed %d, latent %v: the sample is %v", seed, h, x.At(i))
			}
		}
		seen[x.At(0)] = true
	}
	if len(seen) != 3 {
		t.Errorf("three seeds give %d samples", len(seen))
	}
	if _, err := r.Draw(t.Context(), backend, Draw{Plan: plan, Given: given[:3]}); err == nil || !strings.Contains(err.Error(), "holds 4 values, and 3 are given") {
		t.Errorf("latents that are too few: %v", err)
	}
	told := 0
	if x, err := r.Samples(t.Context(), backend, nn.Eval, 3, 1, "--n", func(int, int) { told++ }); err != nil || x.Type.Shape != graph.D(3, 1, 1, 2) || told == 0 {
		t.Errorf("samples: %v, told of %d times", err, told)
	}
}

// A plan begins with its initial values under the seed of the draw.
func TestDrawBegins(t *testing.T) {
	r, backend := toyRun(t, 2)
	v := chain.Var("begin", graph.T(graph.F32, 3))
	v.Init = nn.Normal(1)
	for seed := range uint64(3) {
		x, err := r.Draw(t.Context(), backend, Draw{Plan: chain.Plan{Vars: []nn.Variable{v}, Out: v.Name}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if want := v.Value(seed).At(i); x.At(i) != want {
				t.Errorf("seed %d: value %d is %v, want %v", seed, i, x.At(i), want)
			}
		}
	}
}

// One is one.
func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 pictures", 1: "1 picture", 9: "9 pictures"} {
		if got := Count(n, "pictures"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Pictures make a grid, points of the plane a scatter plot, others nothing.
func TestPicture(t *testing.T) {
	for _, tt := range []struct {
		c, h, w  int
		drawable bool
		noun     string
	}{{3, 8, 8, true, "pictures"}, {1, 28, 20, true, "pictures"}, {1, 1, 2, true, "points"}, {1, 1, 3, false, "points"}, {1, 2, 1, false, "points"}, {2, 8, 8, false, "points"}} {
		in := toy.Config{C: tt.c, H: tt.h, W: tt.w}.Takes()
		x := exec.NewTensor(graph.T(graph.F32, 4, tt.c, tt.h, tt.w))
		m, err := Picture(x, in, 1)
		if (err == nil) != tt.drawable || Drawable(in) != tt.drawable || Noun(in) != tt.noun {
			t.Errorf("%v: %v, %v, %s", in.Shape, err, Drawable(in), Noun(in))
		}
		if unit, both := Images(x, in), Images(x, signed{toy.Config{C: tt.c, H: tt.h, W: tt.w}}.Takes()); unit.Lo != 0 || both.Lo != -1 || unit.Hi != 1 || both.Hi != 1 {
			t.Errorf("%v: from %v to %v in [0, 1], and from %v to %v in [-1, 1]", in.Shape, unit.Lo, unit.Hi, both.Lo, both.Hi)
		}
		if s := Speed(in); s != map[string]string{"pictures": "images/s", "points": "points/s"}[tt.noun] {
			t.Errorf("%v: a speed in %s", in.Shape, s)
		}
		if want := image.Pt(2*(tt.w+2)+2, 2*(tt.h+2)+2); tt.noun == "pictures" && m.Bounds().Size() != want {
			t.Errorf("%v: a grid of %v, want %v", in.Shape, m.Bounds().Size(), want)
		}
	}
}
