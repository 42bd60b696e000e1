package feature

import (
	"bytes"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ebtrain/data/safetensors"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/ref"
	"ebtrain/ddp/philox"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/model/optim"
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
	if err != nil || !(math.Abs(first-math.Ln2) <= 0.5) || last > first/3 {
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
		if row := probabilities.Row(i); !(math.Abs(row[0]+row[1]-1) <= 1e-5) {
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
	for name, is := range map[string]bool{file: true, filepath.Join(t.TempDir(), "none"): true, "/dev/null": false, "classifier_test.go": false} {
		if err := CheckReplace(name); (err == nil) != is {
			t.Errorf("%s may be replaced: %v, %v", name, is, err)
		}
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
		{changed("old", keep, map[string]string{metaKind: kindUnsummed, metaClasses: "2", metaSize: n.Size.String(), metaData: "sha256:abc"}), "sha256:abc", "is of an older program"},
		{changed("unsummed", keep, meta), "sha256:abc", "is damaged: its SHA-256 is "},
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
	for label, want := range map[int]string{2: "labels from 0 to 2, want 0 to 1", -1: "labels from -1 to 1, want 0 to 1"} {
		bad.Labels[3] = label
		if _, err := Train(t.Context(), ref.New(), bad, Training{Classes: 2, Steps: 1, Batch: 4}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Adam's first step moves weights by the rate, 1e-3, whatever their gradients, and from three
// quarters of the steps on by no more than about a tenth of it; classifiers of other weights
// have other digests.
func TestRates(t *testing.T) {
	s := Size{1, 8, 8}
	train := func(steps int, seed uint64) Net {
		n, err := Train(t.Context(), ref.New(), stripes(16, s, 0), Training{Classes: 2, Steps: steps, Batch: 16, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	farthest := func(n Net, from func(v nn.Variable) []float32) (most float64) {
		for _, v := range n.variables(t) {
			for i, x := range from(v) {
				most = max(most, math.Abs(float64(n.values[v.Name].F32()[i]-x)))
			}
		}
		return most
	}
	one := train(1, 3)
	if moved := farthest(one, func(v nn.Variable) []float32 { return v.Value(3).F32() }); !(math.Abs(moved/1e-3-1) <= 0.01) {
		t.Errorf("the first step moves weights by %v", moved)
	}
	three := train(3, 3)
	if moved := farthest(train(4, 3), func(v nn.Variable) []float32 { return three.values[v.Name].F32() }); !(moved > 2e-5 && moved < 3e-4) {
		t.Errorf("the last of four steps moves weights by %v", moved)
	}
	if other := train(1, 4); other.Digest == one.Digest {
		t.Error("another classifier has the same digest")
	}
}

// A pass over the data has each picture once with its label, in another order than the
// last one. Mirrored at random each row is turned round, of each picture now and then.
func TestFill(t *testing.T) {
	const n, batch, passes = 12, 4, 8
	s := Size{1, 8, 8}
	data := Labelled{Size: s}
	for k := range n {
		for i := range s.Len() {
			data.X = append(data.X, float32(100*k+i))
		}
		data.Labels = append(data.Labels, k%2)
	}
	net := Net{Size: s, Classes: 2, trunk: classifierTrunk(s)}
	g, variables, err := net.step(optim.Adam{Name: "classifier"}, batch)
	if err != nil {
		t.Fatal(err)
	}
	b := ref.New()
	vars := b.NewVars()
	if err := nn.Initialise(vars, variables, 1); err != nil {
		t.Fatal(err)
	}
	p, err := b.Compile(g, exec.Options{Name: "classifier", Vars: vars})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close() //nolint:errcheck // ref has nothing to release
	for _, flip := range []bool{false, true} {
		mirrored, before := map[int]int{}, []int{}
		for pass := range passes {
			var order []int
			for step := range n / batch {
				Training{Classes: 2, Batch: batch, Seed: 5, Flip: flip}.fill(p, data, pass*n/batch+step)
				x, y := p.Input(inputPictures).F32(), p.Input(inputOneHot).F32()
				for i := range batch {
					k := int(x[i*s.Len()]) / 100
					order = append(order, k)
					turn := 0
					if int(x[i*s.Len()])%100 != 0 {
						turn = s.W - 1
						mirrored[k]++
					}
					for at, v := range x[i*s.Len() : (i+1)*s.Len()] {
						if int(v) != 100*k+(at/s.W*s.W+(at%s.W^turn)) {
							t.Fatalf("value %d of picture %d is %v", at, k, v)
						}
					}
					if y[2*i+k%2] != 1 || y[2*i+1-k%2] != 0 {
						t.Fatalf("picture %d has the classes %v", k, y[2*i:2*i+2])
					}
				}
			}
			if slices.Equal(order, before) || len(slices.Compact(slices.Sorted(slices.Values(order)))) != n {
				t.Errorf("pass %d has the pictures %v, the one before %v", pass, order, before)
			}
			before = order
		}
		always, never := 0, 0
		for k := range n {
			if mirrored[k] == passes {
				always++
			}
			if mirrored[k] == 0 {
				never++
			}
		}
		if !flip && never != n || flip && (always > 2 || never > 2) {
			t.Errorf("mirrored, if that is asked for (%v): %v times", flip, mirrored)
		}
	}
}

// A classifier of points tells what no line tells: inside a circle from outside.
func TestClassifierOfPoints(t *testing.T) {
	data := Labelled{Size: Size{C: 1, H: 1, W: 2}}
	for i := range 600 {
		var u [2]float64
		philox.Name{Seed: 3, Purpose: philox.Testing, Sample: uint32(i)}.Normal(u[:])
		data.X = append(data.X, float32(u[0]), float32(u[1]))
		label := 0
		if u[0]*u[0]+u[1]*u[1] > 2*math.Ln2 { // half of them
			label = 1
		}
		data.Labels = append(data.Labels, label)
	}
	backend := ref.New()
	net, err := Train(t.Context(), backend, data, Training{Classes: 2, Steps: 200, Batch: 100, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewProbabilities(backend, net, 100)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Of(t.Context(), nil, data.X)
	if a := Accuracy(p, data.Labels); err != nil || !(a > 0.9) {
		t.Errorf("accuracy %v, %v", a, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever is damaged in a classifier's file, none is read that tells otherwise: measures in its
// features would be taken for those of the whole one.
func TestFlippedBytesOfAClassifier(t *testing.T) {
	n, _ := trained(t)
	file := filepath.Join(t.TempDir(), "c.safetensors")
	if err := n.Save(file, "sha256:abc", 0.97); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const header, every = 640, 1999 // bytes; of the weights one of so many
	if err := CheckReplace(file); err != nil {
		t.Error(err)
	}
	for i := 0; i < len(whole); i++ {
		if i > header && i%every > 0 {
			continue
		}
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x01
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(file, n.Size, "sha256:abc"); err == nil && got.Digest != n.Digest {
			t.Fatalf("with byte %d of %d flipped another classifier is read", i, len(whole))
		}
	}
}
