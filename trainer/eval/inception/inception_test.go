package inception

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ebtrain/ddp/exec/cpu"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/model/nn"
)

// uniform are the numbers of testdata/reference.py, in [−½, ½).
func uniform(name string, n int) []float64 {
	h, out := crc32.ChecksumIEEE([]byte(name)), make([]float64, n)
	for i := range out {
		x := uint32(i)*0x9E3779B1 ^ h
		x ^= x >> 16
		x *= 0x85EBCA6B
		x ^= x >> 13
		x *= 0xC2B2AE35
		x ^= x >> 16
		out[i] = float64(x)/(1<<32) - 0.5
	}
	return out
}

// draw is a tensor of the reference.
func draw(name string, shape ...int) tensor {
	n := 1
	for _, k := range shape {
		n *= k
	}
	var of func(u float64) float64
	switch {
	case strings.HasSuffix(name, "conv.weight") || name == "fc.weight":
		scale := math.Sqrt(24 / float64(n/shape[0]))
		of = func(u float64) float64 { return u * scale }
	case strings.HasSuffix(name, "bn.weight"):
		of = func(u float64) float64 { return 1 + 0.4*u }
	case strings.HasSuffix(name, "running_var"):
		of = func(u float64) float64 { return 1 + u }
	default:
		of = func(u float64) float64 { return 0.4 * u }
	}
	t := tensor{shape, make([]float32, n)}
	for i, u := range uniform(name, n) {
		t.x[i] = float32(of(u))
	}
	return t
}

// drawn are all tensors of the reference.
func drawn(t *testing.T) tensors {
	t.Helper()
	c := nn.NewContext(nn.Eval, 1)
	n := network{}
	n.Logits(c, n.Features(c, c.Input("pictures", graph.T(graph.F32, 1, 3, side, side))))
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	all := tensors{}
	for _, v := range c.Variables() {
		layer, part := cutLast(v.Name)
		switch {
		case layer == "fc":
			all[v.Name] = draw(v.Name, shapeOf(v.Type)...)
		case part == "weight":
			all[layer+".conv.weight"] = draw(layer+".conv.weight", shapeOf(v.Type)...)
		default:
			for _, what := range []string{"weight", "bias", "running_mean", "running_var"} {
				all[layer+".bn."+what] = draw(layer+".bn."+what, v.Type.Shape.At(0))
			}
		}
	}
	return all
}

// TestAgainstPyTorch has torchvision's network, with the changes that the package
// names, on weights drawn by a formula: pictures that are enlarged, that are not
// square, that fit, and that are reduced.
func TestAgainstPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases map[string]struct {
		Features, Logits []float64
		FeaturesNorm     float64 `json:"features_norm"`
		LogitsNorm       float64 `json:"logits_norm"`
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	all := drawn(t)
	if len(all) != 94*5+1 {
		t.Errorf("%d tensors, want those of 94 convolutions and the last layer's", len(all))
	}
	backend, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	for name, want := range cases {
		if testing.Short() && name != "40x24" {
			continue // one size is enough
		}
		t.Run(name, func(t *testing.T) {
			s := feature.Size{C: 3}
			if _, err := fmt.Sscanf(name, "%dx%d", &s.H, &s.W); err != nil {
				t.Fatal(err)
			}
			net, err := of(all, s, "drawn")
			if err != nil || !strings.Contains(net.Digest, "drawn") || !strings.Contains(net.Digest, s.String()) { // kept features are named by it
				t.Fatal(net.Digest, err)
			}
			x := make([]float32, s.Len())
			for i, u := range uniform(fmt.Sprintf("pictures %d %d", s.H, s.W), len(x)) {
				x[i] = float32(2 * u)
			}
			e, err := feature.NewExtractor(backend, net, 1)
			if err != nil {
				t.Fatal(err)
			}
			f, err := e.Of(t.Context(), nil, x)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "features", f.Row(0), 64, want.Features, want.FeaturesNorm)
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			tell, err := feature.NewProbabilities(backend, net, 1)
			if err != nil {
				t.Fatal(err)
			}
			p, err := tell.Of(t.Context(), nil, x)
			if err != nil {
				t.Fatal(err)
			}
			// Of logits, what their softmax tells: differences.
			first, logits := math.Log(p.Row(0)[0]), make([]float64, classes)
			for i, v := range p.Row(0) {
				logits[i] = math.Log(v) - first + want.Logits[0]
			}
			compare(t, "logits", logits, 63, want.Logits, want.LogitsNorm)
			if err := tell.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// compare holds every so many values, and the norm of all, to the reference's.
func compare(t *testing.T, what string, got []float64, every int, want []float64, norm float64) {
	t.Helper()
	sum := 0.0
	for i, v := range got {
		sum += v * v
		if i%every == 0 && !(math.Abs(v-want[i/every]) <= 1e-4*norm/math.Sqrt(float64(len(got)))) {
			t.Errorf("%s: value %d is %v, want %v", what, i, v, want[i/every])
		}
	}
	if !(math.Abs(math.Sqrt(sum)/norm-1) <= 1e-4) {
		t.Errorf("%s have norm %v, want %v", what, math.Sqrt(sum), norm)
	}
}

// TestLayers has the sizes of the paper's table 1, for pictures of 299×299, and those of the
// smallest pictures that leave something.
func TestLayers(t *testing.T) {
	for _, tt := range []struct {
		side int
		want string
	}{
		{299, "32×149 32×147 64×147 64×73 80×73 192×71 192×35 256×35 288×35 288×35 768×17 768×17 768×17 768×17 768×17 1280×8 2048×8 2048×8 2048"},
		{75, "32×37 32×35 64×35 64×17 80×17 192×15 192×7 256×7 288×7 288×7 768×3 768×3 768×3 768×3 768×3 1280×1 2048×1 2048×1 2048"},
	} {
		c := nn.NewContext(nn.Eval, 1)
		var got []string
		for _, l := range Layers(c, c.Input("pictures", graph.T(graph.F32, 1, channels, tt.side, tt.side))) {
			s := c.Shape(l.Y)
			text := fmt.Sprint(s.At(1))
			if s.Rank() == 4 {
				text += fmt.Sprintf("×%d", s.At(2))
			}
			got = append(got, text)
		}
		if c.Err() != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%d: %v, %v\nwant %s", tt.side, strings.Join(got, " "), c.Err(), tt.want)
		}
	}
	c := nn.NewContext(nn.Eval, 1)
	Layers(c, c.Input("pictures", graph.T(graph.F32, 1, channels, 74, 74)))
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "Mixed_7a") {
		t.Errorf("74: %v, want an error of Mixed_7a, for which nothing is left", err)
	}
}

// TestRead reads both of PyTorch's formats.
func TestRead(t *testing.T) {
	for _, file := range []string{"tiny.pth", "tiny-legacy.pth"} {
		all, err := read(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		a, b := all["a.weight"], all["b"]
		if len(all) != 2 || !slices.Equal(a.shape, []int{2, 3}) || !slices.Equal(a.x, []float32{0, 1, 2, 3, 4, 5}) || !slices.Equal(b.x, []float32{-1.5, 2.5}) {
			t.Errorf("%s: %v", file, all)
		}
	}
}

// TestRefuses has files and weights that are not the published ones.
func TestRefuses(t *testing.T) {
	colour := feature.Size{C: 3, H: 32, W: 32}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for want, load := range map[string]func() error{
		"is not " + File + ": its SHA-256 is":                             func() error { _, err := Load("testdata/tiny.pth", colour); return err },
		"no such file or directory: want the weights " + File + ": fetch": func() error { _, err := Load("testdata/none.pth", colour); return err },
		pipe + " is a pipe, where a file is expected: want the weights ":  func() error { _, err := Load(pipe, colour); return err },
		"want pictures of 3 channels":                                     func() error { _, err := Load("testdata/tiny.pth", feature.Size{C: 1, H: 32, W: 32}); return err },
	} {
		if err := load(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	const layer = "Mixed_7c.branch_pool.bn.running_var"
	whole := drawn(t)
	for want, change := range map[string]func(tensors){
		"the weights lack " + layer:          func(all tensors) { delete(all, layer) },
		layer + " of the weights is [193]":   func(all tensors) { all[layer] = draw(layer, 193) },
		"value 5 of the weights' " + layer:   func(all tensors) { v := draw(layer, 192); v.x[5] = float32(math.NaN()); all[layer] = v },
		"the weights lack fc.weight":         func(all tensors) { delete(all, "fc.weight") },
		"fc.weight of the weights is [1000 ": func(all tensors) { all["fc.weight"] = draw("fc.weight", 1000, dim) },
	} {
		all := tensors{}
		for k, v := range whole {
			all[k] = v
		}
		change(all)
		if _, err := of(all, colour, "drawn"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
