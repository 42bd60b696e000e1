package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/eval/control"
	"ebtrain/trainer/eval/feature"
)

var size = feature.Size{C: 1, H: 16, W: 16}

// blobs are pictures of two kinds of blobs; the kinds are their labels.
func blobs(n int, from uint32) feature.Labelled {
	out := feature.Labelled{Size: size}
	for i := range n {
		var u [4]float64
		philox.Name{Seed: 5, Purpose: philox.Testing, Sample: from + uint32(i)}.Uniform(u[:])
		r, c := 4+8*u[0], 4+8*u[1]
		kind := i % 2
		for y := range size.H {
			for x := range size.W {
				d := math.Hypot(float64(y)-r, float64(x)-c)
				if kind == 1 {
					d = max(math.Abs(float64(y)-r), math.Abs(float64(x)-c))/2 + 1
				}
				out.X = append(out.X, float32(math.Tanh(2+u[2]-d)))
			}
		}
		out.Labels = append(out.Labels, kind)
	}
	return out
}

func judge(t *testing.T, c Config, reference Set) *Judge {
	t.Helper()
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c.Size == (feature.Size{}) {
		c.Size = size
	}
	if c.Backend == nil {
		c.Backend = backend
	}
	c.Seed, c.Batch, c.Threads = 1, 50, 2
	j, err := New(t.Context(), c, reference)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// Every measure holds other real pictures for better than every bad set, but for
// what it cannot see.
func TestControlsAreWorse(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: half a minute of measuring; TestRanksAgree and TestBadSets measure too")
	}
	const n = 300
	real, other := blobs(2*n, 0), blobs(n, 10_000)
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := feature.Train(t.Context(), backend, real, feature.Training{Classes: 2, Steps: 60, Batch: 50, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var labels []int64
	for _, l := range real.Labels {
		labels = append(labels, int64(l))
	}
	one, _ := control.OneClass(labels, n, 1)
	var class []float32
	for _, i := range one {
		class = append(class, real.X[i*size.Len():(i+1)*size.Len()]...)
	}
	j := judge(t, Config{Measures: []string{KID, SWD, PRDC, C2ST, Neighbours, IS}, Classifier: &net}, Set{Name: "reference", X: real.X})
	of := func(name string, x []float32) map[string]float64 {
		values, notes, err := j.Of(t.Context(), Set{Name: name, X: x})
		if err != nil || len(notes) > 0 {
			t.Fatal(name, notes, err)
		}
		out := map[string]float64{}
		for _, v := range values {
			out[v.Row] = v.Value
		}
		return out
	}
	floor := of("floor", other.X)
	if len(floor) != 15 {
		t.Errorf("%d rows: %v", len(floor), floor)
	}
	half := real.X[:n*size.Len()]
	// The blobs are smooth and alike, so blurred ones, or those of one kind, are close.
	blind := map[string]string{
		"noise":    "neighbour is",
		"blurred":  "neighbour precision-classifier density-classifier recall-classifier coverage-classifier kid-classifier is precision density recall coverage",
		"shuffled": "neighbour is",
		"class":    "neighbour precision precision-classifier density density-classifier recall coverage recall-classifier c2st-accuracy c2st-auc",
	}
	sets := map[string][]float32{"noise": control.Noise(n, size, 1), "blurred": control.Blurred(half, size), "shuffled": control.Shuffled(half, size, 1), "class": class}
	for name, x := range sets {
		bad := of(name, x)
		for _, row := range Rows() {
			if _, ok := bad[row.Name]; !ok || slices.Contains(strings.Fields(blind[name]), row.Name) {
				continue
			}
			if !row.Better.Beats(floor[row.Name], bad[row.Name]) {
				t.Errorf("%s of %s is %v, and of real pictures %v", row.Name, name, bad[row.Name], floor[row.Name])
			}
		}
	}
	copies := of("copies", half)
	if copies["neighbour"] > 1e-3 || !Higher.Beats(floor["neighbour"], copies["neighbour"]) || copies["precision"] != 1 || copies["recall"] != 1 {
		t.Errorf("copies: %v", copies)
	}
}

// Features that a device has kept which rounds otherwise change nothing: pictures of the
// training data are still no way from themselves.
func TestKeptByAnotherDevice(t *testing.T) {
	reference := Set{Name: "reference", X: blobs(110, 0).X, Key: "r"}
	copies := Set{Name: "copies", X: reference.X[:70*size.Len()]}
	c := Config{Measures: []string{KID, PRDC}}
	want, _, err := judge(t, c, reference).Of(t.Context(), copies)
	if err != nil {
		t.Fatal(err)
	}
	c.Cache = feature.Cache{Dir: t.TempDir(), Say: func(err error) { t.Error(err) }}
	other := c
	other.Backend = ref.New()
	judge(t, other, reference)
	for range 2 { // the second from what this device has kept
		if got, _, err := judge(t, c, reference).Of(t.Context(), copies); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

// Ranks that share the features find what one finds, bit for bit; only the first
// has it.
func TestRanksAgree(t *testing.T) {
	reference, samples := Set{Name: "reference", X: blobs(110, 0).X, Key: "r"}, Set{Name: "samples", X: control.Noise(70, size, 1)}
	c := Config{Measures: []string{KID, PRDC, SWD, C2ST, Neighbours}}
	want, _, err := judge(t, c, reference).Of(t.Context(), samples)
	if err != nil || len(want) != 9 {
		t.Fatal(want, err)
	}
	for _, world := range []int{2, 3} {
		if world > 2 && testing.Short() {
			continue
		}
		agree(t, world, c, reference, samples, want)
	}
}

// agree has so many ranks judge samples.
func agree(t *testing.T, world int, c Config, reference, samples Set, want []Value) {
	t.Helper()
	comms, err := host.NewLocal(t.Context(), world)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for r, comm := range comms {
		mine := c
		mine.Comm = comm
		mine.Cache = feature.Cache{Dir: t.TempDir(), Say: func(err error) { t.Log(err) }} // each has its own: what one lacks all compute
		wg.Go(func() {
			got, _, err := judge(t, mine, reference).Of(t.Context(), samples)
			if r == 0 && !slices.Equal(got, want) || r > 0 && len(got) > 0 || err != nil {
				t.Errorf("rank %d of %d: %v, %v; want %v", r, world, got, err, want)
			}
		})
	}
	wg.Wait()
	for _, comm := range comms {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBadSets(t *testing.T) {
	reference := Set{Name: "reference", X: blobs(LeastFrechet, 0).X}
	j := judge(t, Config{Measures: []string{Frechet}}, reference)
	few := Set{Name: "few", X: blobs(20, 0).X}
	values, notes, err := j.Of(t.Context(), few)
	if err != nil || len(values) != 0 || fmt.Sprint(notes) != "[few: 20 pictures, and a Fréchet distance wants at least 2048]" {
		t.Errorf("%v, %q, %v", values, notes, err)
	}
	values, _, err = j.Of(t.Context(), Set{Name: "copies", X: reference.X})
	if err != nil || len(values) != 1 || !(math.Abs(values[0].Value) <= 1e-5) {
		t.Errorf("of itself: %v, %v", values, err)
	}
	for want, v := range map[string]float64{"NaN": math.NaN(), "-Inf": math.Inf(-1)} {
		few.X[7] = float32(v)
		if _, _, err := j.Of(t.Context(), few); err == nil || err.Error() != "training diverged: value 7 of the few is "+want {
			t.Errorf("%v", err)
		}
	}
	if _, _, err := j.Of(t.Context(), Set{Name: "none"}); err == nil || !strings.Contains(err.Error(), "want at least two pictures") {
		t.Errorf("%v", err)
	}
	if _, err := New(t.Context(), Config{Size: size, Measures: []string{Frechet}}, Set{X: few.X}); err == nil || !strings.Contains(err.Error(), "the reference holds 20 pictures") {
		t.Errorf("%v", err)
	}
	if _, err := New(t.Context(), Config{Size: feature.Size{C: 1, H: 2, W: 7}}, Set{}); err == nil || !strings.Contains(err.Error(), "sides of at least 8") {
		t.Errorf("%v", err)
	}
}

// A set that is too small for a measure lacks its number, says so, and ends nothing.
func TestSmallSets(t *testing.T) {
	reference := blobs(40, 0)
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := feature.Train(t.Context(), backend, reference, feature.Training{Classes: 2, Steps: 3, Batch: 20, Seed: 1})
	if err := errors.Join(err, backend.Close()); err != nil {
		t.Fatal(err)
	}
	j := judge(t, Config{Measures: []string{KID, PRDC, SWD, IS}, Classifier: &net}, Set{Name: "reference", X: reference.X})
	const few = "few: 5 pictures, and precision and recall want at least 6; few: 5 pictures, and an inception score wants at least 20"
	for _, tt := range []struct {
		n, rows int
		notes   string
	}{
		{5, 3, few}, {20, 12, ""}, {25, 12, ""}, {1, 0, "few: 1 picture, and a comparison wants at least 2"},
	} {
		values, notes, err := j.Of(t.Context(), Set{Name: "few", X: blobs(tt.n, 100).X})
		if err != nil || len(values) != tt.rows || strings.Join(notes, "; ") != tt.notes {
			t.Errorf("of %d: %v, %q, %v", tt.n, values, notes, err)
		}
	}
	j = judge(t, Config{Measures: []string{KID, PRDC}}, Set{Name: "reference", X: blobs(4, 0).X})
	_, notes, err := j.Of(t.Context(), Set{Name: "many", X: blobs(20, 100).X})
	if err != nil || strings.Join(notes, "; ") != "the reference: 4 pictures, and precision and recall want at least 6" {
		t.Errorf("%q, %v", notes, err)
	}
}
