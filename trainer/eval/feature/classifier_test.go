package feature

import (
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/safetensors"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/philox"
)

// stripes are pictures of noise with horizontal (0) or vertical (1) stripes.
func stripes(n int, s Size, from uint32) Labelled {
	out := Labelled{Size: s}
	for i := range n {
		x := make([]float64, s.Len())
		philox.Name{Seed: 2, Purpose: philox.Testing, Sample: from + uint32(i)}.Normal(x)
		for k := range x {
			at := k / s.W % s.H
			if i%2 == 1 {
				at = k % s.W
			}
			v := 0.3 * x[k]
			if at%4 < 2 {
				v += 0.5
			}
			out.X = append(out.X, float32(v))
		}
		out.Labels = append(out.Labels, i%2)
	}
	return out
}

func trained(t *testing.T) (Net, Labelled) {
	t.Helper()
	s := Size{1, 8, 8}
	var first, last float64
	n, err := Train(t.Context(), ref.New(), stripes(64, s, 0), Training{Classes: 2, Steps: 40, Batch: 16, Seed: 3, Each: func(done int, loss float64) {
		if done == 1 {
			first = loss
		}
		last = loss
	}})
	if err != nil || math.Abs(first-math.Ln2) > 0.5 || last > first/3 {
		t.Fatalf("loss from %v to %v, %v", first, last, err)
	}
	return n, stripes(50, s, 1000)
}

func TestClassifier(t *testing.T) {
	n, test := trained(t)
	p, err := NewProbabilities(ref.New(), n, 16)
	if err != nil {
		t.Fatal(err)
	}
	probabilities, err := p.Of(t.Context(), nil, test.X)
	if err != nil {
		t.Fatal(err)
	}
	if a := Accuracy(probabilities, test.Labels); a < 0.95 {
		t.Errorf("accuracy %v", a)
	}
	for i := range probabilities.N {
		if row := probabilities.Row(i); math.Abs(row[0]+row[1]-1) > 1e-5 {
			t.Fatalf("probabilities %v", row)
		}
	}
	if _, err := NewProbabilities(ref.New(), Random(1, n.Size), 4); err == nil {
		t.Error("a random network tells classes")
	}
	file := filepath.Join(t.TempDir(), "c.safetensors")
	if err := n.Save(file, "sha256:abc", 0.97); err != nil {
		t.Fatal(err)
	}
	back, err := Load(file, n.Size, "sha256:abc")
	if err != nil || back.Digest != n.Digest || back.Classes != 2 {
		t.Fatalf("%v", err)
	}
	q, err := NewProbabilities(ref.New(), back, 16)
	if err != nil {
		t.Fatal(err)
	}
	again, err := q.Of(t.Context(), nil, test.X)
	if err != nil || !near(again.X, probabilities.X, 0) {
		t.Errorf("read back it says something else, %v", err)
	}
}

// The values of a network are of all that it computes with, by name.
func TestValues(t *testing.T) {
	n, _ := trained(t)
	for name, tt := range map[string]struct {
		net  Net
		want []string
	}{
		"random":     {Random(1, Size{1, 8, 8}), []string{"random.conv1.bias", "random.conv1.weight", "random.conv2.bias", "random.conv2.weight"}},
		"classifier": {n, []string{"classifier.conv1.bias", "classifier.conv1.weight", "classifier.conv2.bias", "classifier.conv2.weight", "head.bias", "head.weight"}},
	} {
		all, err := tt.net.Values()
		if got := slices.Sorted(maps.Keys(all)); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, tt.want)
		}
		for k, v := range all {
			if !slices.ContainsFunc(v.F32(), func(x float32) bool { return x != 0 }) {
				t.Errorf("%s: %s is 0", name, k)
			}
		}
	}
}

// Bad files are one sentence each.
func TestLoadRefuses(t *testing.T) {
	n, _ := trained(t)
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := n.Save(good, "sha256:abc", 0.97); err != nil {
		t.Fatal(err)
	}
	changed := func(name string, change func(*safetensors.Tensor) bool, meta map[string]string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		var tensors []safetensors.Tensor
		for _, v := range n.names() {
			var shape []int64
			for _, d := range shapeOf(n.values[v].Type) {
				shape = append(shape, int64(d))
			}
			one := safetensors.Float32s(v, shape, n.values[v].F32())
			if change(&one) {
				tensors = append(tensors, one)
			}
		}
		f, err := os.Create(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := safetensors.Write(io.Writer(f), tensors, meta); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	meta := map[string]string{metaKind: kindClassifier, metaClasses: "2", metaSize: n.Size.String(), metaData: "sha256:abc"}
	keep := func(*safetensors.Tensor) bool { return true }
	for _, c := range []struct{ file, data, want string }{
		{good, "sha256:def", "was trained on other data"},
		{filepath.Join(dir, "none"), "", "no such file"},
		{changed("other", keep, nil), "sha256:abc", "is no classifier"},
		{changed("short", func(v *safetensors.Tensor) bool { return v.Name != "classifier.conv1.weight" }, meta), "sha256:abc", "lacks the layer classifier.conv1.weight"},
		{changed("shape", func(v *safetensors.Tensor) bool {
			if v.Name == "head.bias" {
				*v = safetensors.Float32s(v.Name, []int64{3}, make([]float32, 3))
			}
			return true
		}, meta), "sha256:abc", "the layer head.bias is F32 [3], want F32 [2]"},
		{changed("nan", func(v *safetensors.Tensor) bool {
			if v.Name == "head.bias" {
				*v = safetensors.Float32s(v.Name, []int64{2}, []float32{1, float32(math.NaN())})
			}
			return true
		}, meta), "sha256:abc", "value 1 of the classifier's head.bias is NaN"},
	} {
		if _, err := Load(c.file, n.Size, c.data); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), c.file) != 1 {
			t.Errorf("%s: %v, want %q", filepath.Base(c.file), err, c.want)
		}
	}
	if _, err := Load(good, Size{3, 8, 8}, "sha256:abc"); err == nil || !strings.Contains(err.Error(), "is a classifier of pictures of 1×8×8, and these are of 3×8×8") {
		t.Errorf("another size: %v", err)
	}
}

func TestTrainRefuses(t *testing.T) {
	s := Size{1, 8, 8}
	one := stripes(20, s, 0)
	clear(one.Labels)
	for want, c := range map[string]struct {
		data Labelled
		t    Training
	}{
		"are of one class":             {one, Training{Classes: 2, Steps: 1, Batch: 4}},
		"of 1 classes":                 {one, Training{Classes: 1, Steps: 1, Batch: 4}},
		"20 pictures in batches of 40": {one, Training{Classes: 2, Steps: 1, Batch: 40}},
	} {
		if _, err := Train(t.Context(), ref.New(), c.data, c.t); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	bad := stripes(20, s, 0)
	bad.Labels[3] = 2
	if _, err := Train(t.Context(), ref.New(), bad, Training{Classes: 2, Steps: 1, Batch: 4}); err == nil || !strings.Contains(err.Error(), "labels from 0 to 2, want 0 to 1") {
		t.Errorf("%v", err)
	}
}
