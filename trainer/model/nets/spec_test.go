package nets

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/data/loader"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/algo"
	"ebtrain/trainer/model/nn"
)

// The parameter counts of all tables of ALGORITHMS.md §1.2, in millions, and
// the shapes of what the networks give.
func TestParameterCounts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		joint bool
		want  [3]float64 // E, Q, G
		half  float64    // half a unit of the last digit given
	}{
		{"conv32", false, [3]float64{7.39, 2.78, 4.45}, 0.005},
		{"conv32", true, [3]float64{8.70, 2.78, 4.45}, 0.005},
		{"conv64", false, [3]float64{29.7, 8.7, 16.9}, 0.05},
		{"resnet32", false, [3]float64{1.05, 1.09, 4.28}, 0.005},
		{"resnet128", false, [3]float64{29.0, 29.3, 32.2}, 0.05},
	} {
		name := tt.name
		if tt.joint {
			name += " joint"
		}
		t.Run(name, func(t *testing.T) {
			spec, err := Named(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			n, err := spec.Build()
			if err != nil {
				t.Fatal(err)
			}
			c := nn.NewContext(nn.Train, 1)
			v := c.Input("v", graph.T(graph.F32, 2, 3, spec.Size, spec.Size))
			mean, logVar := n.Inference(c, v)
			g := n.Generator(c, mean)
			var logit, e graph.ID
			if tt.joint {
				logit, e = n.(Joint).JointEnergy(c, v, mean)
			} else {
				logit, e = n.Energy(c, v)
			}
			if _, err := c.Commit(); err != nil {
				t.Fatal(err)
			}
			for i, net := range []string{"energy", "inference", "generator"} {
				if got := float64(count(c, net)) / 1e6; !(math.Abs(got-tt.want[i]) <= tt.half) {
					t.Errorf("%s has %.3f M parameters, want %.2f M", net, got, tt.want[i])
				}
			}
			latent := graph.D(2, spec.Latent)
			for id, want := range map[graph.ID]graph.Shape{logit: graph.D(2, 1), e: graph.D(2, 1), mean: latent, logVar: latent, g: c.Shape(v)} {
				if got := c.Shape(id); got != want {
					t.Errorf("shape %v, want %v", got, want)
				}
			}
		})
	}
}

// count is the number of a network's parameters.
func count(c *nn.Context, net string) int {
	n := 0
	for _, p := range c.Params(net) {
		n += c.Shape(p.ID).Len()
	}
	return n
}

// The residual networks alone give energies below 0; they have bounded variances, and the
// convolutional ones if they are asked to: log σ² is below 0 whatever the weights are.
func TestRangeOfOutputs(t *testing.T) {
	bounded := Spec{Family: ConvFamily, Size: 32, Channels: 3, Width: 64, Latent: 100, BoundedVariance: true}
	specs := []Spec{bounded}
	for _, name := range Names() {
		spec, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	for _, spec := range specs {
		n, err := spec.Build()
		if err != nil {
			t.Fatal(err)
		}
		c := nn.NewContext(nn.Eval, 1)
		v := c.Input("v", graph.T(graph.F32, 1, 3, spec.Size, spec.Size))
		logit, energy := n.Energy(c, v)
		_, logVar := n.Inference(c, v)
		resnet := spec.Family == ResNetFamily
		if (logit == energy) != resnet {
			t.Errorf("%s: energy is the logit itself: %v, want %v", spec.Name(), logit == energy, resnet)
		}
		u, ok := c.Node(logVar).Op.(graph.Unary)
		if got := spec.EnergyAbove0(); got != (logit != energy) {
			t.Errorf("%s: no energy is below 0: %v, want %v", spec.Name(), got, logit != energy)
		}
		if got, want := ok && u.Fn == graph.Neg, resnet || spec.BoundedVariance; got != want {
			t.Errorf("%+v: log variance is negative by construction: %v, want %v", spec, got, want)
		}
	}
}

// All networks read pictures of their size in [−1, 1].
func TestTakes(t *testing.T) {
	want := algo.Inputs{Shape: graph.D(1, 32, 32), Range: loader.Symmetric}
	for _, n := range []interface{ Takes() algo.Inputs }{
		Spec{Family: ConvFamily, Size: 32, Channels: 1}, Spec{Family: ResNetFamily, Size: 32, Channels: 1}, ResNet{Size: 32, Channels: 1},
	} {
		if got := n.Takes(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v takes %+v, want %+v", n, got, want)
		}
	}
}

func TestSpec(t *testing.T) {
	for _, name := range Names() {
		s, err := Named(name)
		if err != nil || s.Name() != name || s.Validate() != nil {
			t.Errorf("%s: got %+v, %v, %v", name, s, err, s.Validate())
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %s reads back as %+v, %v", name, raw, back, err)
		}
	}
	if _, err := Named("conv16"); err == nil || !strings.Contains(err.Error(), "resnet128") {
		t.Errorf("an unknown name: got %v, want the names there are", err)
	}
	for _, tt := range []struct {
		name string
		s    Spec
		want string
	}{
		{"no family", Spec{Size: 32, Channels: 3, Width: 64, Latent: 100}, "family"},
		{"size of another family", Spec{Family: ConvFamily, Size: 128, Channels: 3, Width: 64, Latent: 100}, "32x32 or 64x64"},
		{"residual size", Spec{Family: ResNetFamily, Size: 48, Channels: 3, Width: 64, Latent: 128}, "32x32, 64x64 or 128x128"},
		{"residual size between", Spec{Family: ResNetFamily, Size: 96, Channels: 3, Width: 64, Latent: 128}, "32x32, 64x64 or 128x128"},
		{"residual width", Spec{Family: ResNetFamily, Size: 32, Channels: 3, Latent: 128}, "width"},
		{"shortcut", Spec{Family: ConvFamily, Size: 32, Channels: 3, Width: 64, Latent: 100, PlainShortcut: true}, "shortcuts"},
		{"bounded", Spec{Family: ResNetFamily, Size: 32, Channels: 3, Width: 64, Latent: 128, BoundedVariance: true}, "bounded as it is"},
	} {
		if err := tt.s.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// What a spec says arrives in its networks.
func TestBuild(t *testing.T) {
	for _, tt := range []struct {
		s    Spec
		want Networks
	}{
		{Spec{Family: ConvFamily, Size: 64, Channels: 1, Width: 8, Latent: 5, BoundedVariance: true}, Conv{64, 1, 8, 5, true}},
		{Spec{Family: ConvFamily, Size: 32, Channels: 3, Width: 64, Latent: 100}, Conv{32, 3, 64, 100, false}},
		{Spec{Family: ResNetFamily, Size: 128, Channels: 1, Width: 8, Latent: 5, PlainShortcut: true},
			ResNet{Size: 128, Channels: 1, Width: 8, Latent: 5, PlainShortcut: true}},
		{Spec{Family: ResNetFamily, Size: 32, Channels: 3, Width: 64, Latent: 128}, ResNet{Size: 32, Channels: 3, Width: 64, Latent: 128}},
	} {
		if got, err := tt.s.Build(); err != nil || got != tt.want {
			t.Errorf("%+v is built as %+v, %v; want %+v", tt.s, got, err, tt.want)
		}
	}
}

// Data give the number of channels, and must have the networks' size both ways.
func TestFit(t *testing.T) {
	for _, d := range []data.Schema{{C: 1, H: 32, W: 28}, {C: 1, H: 28, W: 32}, {C: 1, H: 64, W: 64}} {
		s, n := Spec{Family: ConvFamily, Size: 32, Channels: 3}, ResNet{Size: 32, Channels: 3}
		if err := s.Fit(d); err == nil || s.Channels != 3 || err.Error() != "--net conv32 takes 32x32" {
			t.Errorf("%v: %v, %+v", d, err, s)
		}
		if err := n.Fit(d); err == nil || n.Channels != 3 {
			t.Errorf("%v: %v, %+v", d, err, n)
		}
	}
	s := Spec{Family: ConvFamily, Size: 32, Channels: 3}
	if err := s.Fit(data.Schema{C: 1, H: 32, W: 32}); err != nil || s.Channels != 1 {
		t.Errorf("%v, %+v", err, s)
	}
}

// Where a divergence may jump there is a flag against it: of convolutional networks whose
// variances are not bounded.
func TestSteadier(t *testing.T) {
	for want, specs := range map[string][]Spec{
		"--bounded-variance": {{Family: ConvFamily}},
		"":                   {{Family: ConvFamily, BoundedVariance: true}, {Family: ResNetFamily}},
	} {
		for _, s := range specs {
			if got := s.Steadier(); got != want {
				t.Errorf("%+v: %q, want %q", s, got, want)
			}
		}
	}
}
