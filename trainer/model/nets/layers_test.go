package nets

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// layers writes the layers between x and y in the notation of ALGORITHMS.md
// §1.2: "C4/2/1 64→64" is a convolution with kernel 4, stride 2, padding 1,
// "T" a transposed one, "linear 128→1" a linear layer; pool and up halve and
// double the size.
func layers(t *testing.T, build func(c *nn.Context) graph.ID) string {
	t.Helper()
	c := nn.NewContext(nn.Eval, 1)
	c.Output("y", build(c))
	g, err := c.Commit()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	live := g.Live()
	for i, n := range g.Nodes() {
		if !live[i] {
			continue
		}
		channels := func(k int) int { return g.Type(n.In[k]).Shape.At(1) }
		out := g.Type(n.Out[0]).Shape
		switch op := n.Op.(type) {
		case graph.Conv2D:
			all = append(all, fmt.Sprintf("C%d/%d/%d %d→%d", op.KH, op.StrideH, op.PadT, channels(0), out.At(1)))
		case graph.Conv2DGradX:
			all = append(all, fmt.Sprintf("T%d/%d/%d %d→%d", op.KH, op.StrideH, op.PadT, channels(1), out.At(1)))
		case graph.MatMul:
			if op.TransY { // those of spectral norm are not transposed
				all = append(all, fmt.Sprintf("linear %d→%d", channels(0), out.At(1)))
			}
		case graph.SumPool2D:
			all = append(all, fmt.Sprintf("pool%d", op.StrideH))
		case graph.Upsample2D:
			all = append(all, op.String())
		case graph.Reduce:
			if out.Rank() == 4 && !op.Over(0) && !op.Over(1) { // those of spectral norm are
				all = append(all, "sum")
			}
		case graph.Unary:
			switch op.Fn {
			case graph.LeakyRelu, graph.Relu, graph.Tanh, graph.Softplus, graph.Exp, graph.Sigmoid, graph.Elu:
				all = append(all, op.String())
			case graph.Sqrt: // only batch norm has a root
				all = append(all, "BN")
			}
		}
	}
	return strings.Join(all, "; ")
}

// Every layer and activation, in order. The eighth convolution of E and the
// last have no activation; the heads of Q have none (log σ² is unbounded); G
// ends in tanh.
func TestLayers(t *testing.T) {
	image, latent := graph.T(graph.F32, 2, 3, 32, 32), graph.T(graph.F32, 2, 100)
	const act, lrelu, relu = "leakyrelu{0.1}; ", "BN; leakyrelu{0.2}; ", "BN; relu; "
	body := "C3/1/1 3→48; " + lrelu + "C4/2/1 48→96; " + lrelu + "C4/2/1 96→192; " + lrelu + "C4/2/1 192→384; " + lrelu
	for _, tt := range []struct {
		name  string
		build func(n Conv, c *nn.Context) graph.ID
		want  string
	}{
		{"energy", func(n Conv, c *nn.Context) graph.ID {
			_, e := n.Energy(c, c.Input("v", image))
			return e
		}, "C3/1/1 3→64; " + act + "C4/2/1 64→64; " + act + "C3/1/1 64→128; " + act + "C4/2/1 128→128; " + act +
			"C3/1/1 128→256; " + act + "C4/2/1 256→256; " + act + "C3/1/1 256→512; " + act + "C4/1/0 512→512; " +
			"C1/1/0 512→512; " + act + "C1/1/0 512→1; softplus"},
		{"logit", func(n Conv, c *nn.Context) graph.ID {
			logit, e := n.Energy(c, c.Input("v", image))
			if c.Softplus(logit) != e {
				t.Error("the energy is not the softplus of the logit")
			}
			return c.Slice(logit, 0, 0, 1, 1)
		}, "C3/1/1 3→64; " + act + "C4/2/1 64→64; " + act + "C3/1/1 64→128; " + act + "C4/2/1 128→128; " + act +
			"C3/1/1 128→256; " + act + "C4/2/1 256→256; " + act + "C3/1/1 256→512; " + act + "C4/1/0 512→512; " +
			"C1/1/0 512→512; " + act + "C1/1/0 512→1"},
		{"mean", func(n Conv, c *nn.Context) graph.ID {
			mean, _ := n.Inference(c, c.Input("v", image))
			return mean
		}, body + "C4/1/0 384→100"},
		{"log variance", func(n Conv, c *nn.Context) graph.ID {
			_, logVar := n.Inference(c, c.Input("v", image))
			return logVar
		}, body + "C4/1/0 384→100"},
		{"bounded log variance", func(n Conv, c *nn.Context) graph.ID {
			n.BoundedVariance = true
			_, logVar := n.Inference(c, c.Input("v", image))
			return logVar
		}, body + "C4/1/0 384→100; softplus"},
		{"generator", func(n Conv, c *nn.Context) graph.ID {
			return n.Generator(c, c.Input("h", latent))
		}, "T4/1/0 100→384; " + relu + "T4/2/1 384→384; " + relu + "T4/2/1 384→192; " + relu + "T4/2/1 192→96; " + relu +
			"T3/1/1 96→3; tanh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			build := func(c *nn.Context) graph.ID {
				return tt.build(Conv{Size: 32, Channels: 3, Width: 64, Latent: 100}, c)
			}
			if got := layers(t, build); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The names and shapes of all variables at width 8: they are the names in
// checkpoints.
func TestVariables(t *testing.T) {
	n := Conv{Size: 32, Channels: 1, Width: 8, Latent: 10}
	c := nn.NewContext(nn.Train, 1)
	v := c.Input("v", graph.T(graph.F32, 2, 1, 32, 32))
	n.Energy(c, v)
	mean, _ := n.Inference(c, v)
	n.Generator(c, mean)
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, v := range c.Variables() {
		role := map[nn.Role]string{nn.Weight: "weight", nn.Buffer: "buffer", nn.Moment: "moment"}[v.Role]
		fmt.Fprintln(&got, v.Name, v.Type, role)
	}
	if got.String() != variables() {
		t.Errorf("got\n%s\nwant\n%s", got.String(), variables())
	}
}

func variables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	for i, s := range [][3]int{{8, 1, 3}, {8, 8, 4}, {16, 8, 3}, {16, 16, 4}, {32, 16, 3}, {32, 32, 4}, {64, 32, 3}, {64, 64, 4}, {64, 64, 1}, {1, 64, 1}} {
		line("energy.conv%d.weight_orig f32[%d,%d,%d,%d] weight", i+1, s[0], s[1], s[2], s[2])
		line("energy.conv%d.weight_u f32[%d] buffer", i+1, s[0])
		line("energy.conv%d.weight_v f32[%d] buffer", i+1, s[1]*s[2]*s[2])
		line("energy.conv%d.bias f32[%d] weight", i+1, s[0])
	}
	norm := func(net string, i, c int) {
		for _, v := range []string{"weight %s weight", "bias %s weight", "running_mean %s buffer", "running_var %s buffer"} {
			line("%s.bn%d."+v, net, i, fmt.Sprintf("f32[%d]", c))
		}
	}
	for i, s := range [][3]int{{6, 1, 3}, {12, 6, 4}, {24, 12, 4}, {48, 24, 4}} {
		line("inference.conv%d.weight f32[%d,%d,%d,%d] weight", i+1, s[0], s[1], s[2], s[2])
		norm("inference", i+1, s[0])
	}
	for _, head := range []string{"mean", "logvar"} {
		line("inference.%s.weight f32[10,48,4,4] weight", head)
		line("inference.%s.bias f32[10] weight", head)
	}
	for i, s := range [][2]int{{10, 48}, {48, 48}, {48, 24}, {24, 12}} {
		line("generator.conv%d.weight f32[%d,%d,4,4] weight", i+1, s[0], s[1])
		norm("generator", i+1, s[1])
	}
	line("generator.conv5.weight f32[12,1,3,3] weight")
	line("generator.conv5.bias f32[1] weight")
	return b.String()
}

// Every convolution starts from N(0, 0.02²), biases from PyTorch's default.
func TestInitialWeights(t *testing.T) {
	n := Conv{Size: 32, Channels: 3, Width: 16, Latent: 100}
	c := nn.NewContext(nn.Train, 1)
	v := c.Input("v", graph.T(graph.F32, 2, 3, 32, 32))
	n.Energy(c, v)
	mean, _ := n.Inference(c, v)
	n.JointEnergy(c, v, mean)
	n.Generator(c, mean)
	count := 0
	for _, v := range c.Variables() {
		if v.Type.Shape.Rank() != 4 {
			continue
		}
		count++
		x, sum, largest := v.Value(1), 0.0, 0.0
		size := v.Type.Shape.Len()
		for i := range size {
			sum += x.At(i) * x.At(i)
			largest = max(largest, x.At(i), -x.At(i))
		}
		sd2 := sum / float64(size)
		tol := 5 * math.Sqrt(2/float64(size)) // five standard errors of the variance
		if sd2 < 0.0004*(1-tol) || sd2 > 0.0004*(1+tol) || size > 400 && largest < 0.045 {
			t.Errorf("%s: variance %v, largest %v; want N(0, 0.02²)", v.Name, sd2, largest)
		}
	}
	if count != 10+(8+2)+6+5 {
		t.Errorf("%d convolutions, want 31", count)
	}
}
