package nets

import (
	"fmt"
	"strings"
	"testing"

	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Every layer and activation of the other networks, in the order in which they
// are made, from the tables of ALGORITHMS.md §1.2 (i) to (iii).
func TestLayersOfTheOthers(t *testing.T) {
	for _, tt := range []struct{ name, net, want string }{
		{"conv64", "energy", energy64},
		{"conv64", "inference", inference64},
		{"conv64", "generator", generator64},
		{"conv32", "joint energy", joint32},
		{"resnet32", "energy", trunk(t, "128 down", "128 down", "128", "128") + "linear 128→1"},
		{"resnet32", "inference", trunk(t, "128 down", "128 down", "128", "128") + "linear 128→128; linear 128→128; softplus"},
		{"resnet32", "generator", rises(256, 256, 256, 256)},
		{"resnet128", "energy", trunk(t, "64 down", "128 down", "256 down", "512 down", "1024 down", "1024") + "linear 1024→1"},
		{"resnet128", "inference", trunk(t, "64 down", "128 down", "256 down", "512 down", "1024 down", "1024") +
			"linear 1024→128; linear 1024→128; softplus"},
		{"resnet128", "generator", rises(1024, 1024, 512, 256, 128, 64)},
	} {
		t.Run(tt.name+" "+tt.net, func(t *testing.T) {
			spec, err := Named(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			n, err := spec.Build()
			if err != nil {
				t.Fatal(err)
			}
			got := layers(t, func(c *nn.Context) (y graph.ID) {
				v, h := graph.T(graph.F32, 2, 3, spec.Size, spec.Size), graph.T(graph.F32, 2, spec.Latent)
				switch tt.net {
				case "energy":
					_, y = n.Energy(c, c.Input("v", v))
				case "joint energy":
					_, y = n.(Joint).JointEnergy(c, c.Input("v", v), c.Input("h", h))
				case "inference":
					mean, logVar := n.Inference(c, c.Input("v", v))
					y = c.Concat(1, mean, logVar)
				case "generator":
					y = n.Generator(c, c.Input("h", h))
				}
				return y
			})
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

const (
	energy64 = "C3/1/1 3→64; leakyrelu{0.1}; C4/2/1 64→64; leakyrelu{0.1}; C3/1/1 64→128; leakyrelu{0.1}; C4/2/1 128→128; leakyrelu{0.1}; " +
		"C3/1/1 128→256; leakyrelu{0.1}; C4/2/1 256→256; leakyrelu{0.1}; C3/1/1 256→512; leakyrelu{0.1}; C4/2/1 512→512; leakyrelu{0.1}; " +
		"C3/1/1 512→1024; leakyrelu{0.1}; C4/1/0 1024→1024; C1/1/0 1024→1024; leakyrelu{0.1}; C1/1/0 1024→1; softplus"
	inference64 = "C3/1/1 3→48; BN; leakyrelu{0.2}; C4/2/1 48→96; BN; leakyrelu{0.2}; C4/2/1 96→192; BN; leakyrelu{0.2}; " +
		"C4/2/1 192→384; BN; leakyrelu{0.2}; C4/2/1 384→768; BN; leakyrelu{0.2}; C4/1/0 768→100; C4/1/0 768→100"
	generator64 = "T4/1/0 100→768; BN; relu; T4/2/1 768→768; BN; relu; T4/2/1 768→384; BN; relu; T4/2/1 384→192; BN; relu; " +
		"T4/2/1 192→96; BN; relu; T3/1/1 96→3; tanh"
	joint32 = "C3/1/1 3→64; leakyrelu{0.1}; C4/2/1 64→64; leakyrelu{0.1}; C3/1/1 64→128; leakyrelu{0.1}; C4/2/1 128→128; leakyrelu{0.1}; " +
		"C3/1/1 128→256; leakyrelu{0.1}; C4/2/1 256→256; leakyrelu{0.1}; C3/1/1 256→512; leakyrelu{0.1}; C4/1/0 512→512; " +
		"C1/1/0 100→64; leakyrelu{0.1}; C1/1/0 64→64; leakyrelu{0.1}; C1/1/0 64→128; leakyrelu{0.1}; C1/1/0 128→128; leakyrelu{0.1}; " +
		"C1/1/0 128→256; leakyrelu{0.1}; C1/1/0 256→256; leakyrelu{0.1}; C1/1/0 256→512; leakyrelu{0.1}; C1/1/0 512→512; " +
		"C1/1/0 1024→1024; leakyrelu{0.1}; C1/1/0 1024→1; softplus"
)

// trunk are the down blocks with these outputs, of images in colour. The
// pool stands before the shortcut's C1, which commutes with it, and in rises
// the upsampling after it.
func trunk(t *testing.T, blocks ...string) string {
	t.Helper()
	in := 3
	var b strings.Builder
	for i, block := range blocks {
		var out int
		if _, err := fmt.Sscan(block, &out); err != nil {
			t.Fatal(err)
		}
		down := strings.HasSuffix(block, "down")
		switch {
		case i == 0:
			fmt.Fprintf(&b, "C3/1/1 %d→%d; relu; C3/1/1 %d→%d; pool2; pool2; C1/1/0 %d→%d; ", in, out, out, out, in, out)
		case down:
			fmt.Fprintf(&b, "relu; C3/1/1 %d→%d; relu; C3/1/1 %d→%d; pool2; pool2; C1/1/0 %d→%d; ", in, in, in, out, in, out)
		default: // the shortcut is the identity
			fmt.Fprintf(&b, "relu; C3/1/1 %d→%d; relu; C3/1/1 %d→%d; ", in, in, in, out)
		}
		in = out
	}
	return b.String() + "relu; sum; "
}

// rises are the up blocks with these outputs, from in channels of 4×4.
func rises(in int, outs ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "linear 128→%d; ", in*16)
	const double = "upsample2d{bilinear x2}; "
	for _, out := range outs {
		fmt.Fprintf(&b, "BN; relu; %sC3/1/1 %d→%d; BN; relu; C3/1/1 %d→%d; C1/1/0 %d→%d; %s", double, in, out, out, out, in, out, double)
		in = out
	}
	fmt.Fprintf(&b, "BN; relu; C3/1/1 %d→3; tanh", in)
	return b.String()
}

// The names and shapes of all variables of the residual networks at width 2 and
// of the joint energy net at width 4: they are the names in checkpoints.
func TestVariablesOfTheOthers(t *testing.T) {
	for _, tt := range []struct {
		name  string
		joint bool
		width int
		want  func() []string
	}{
		{"resnet32", false, 2, func() []string { return residualVariables([]int{4, 4, 4, 4}, 2, []int{8, 8, 8, 8}, true) }},
		{"resnet128", false, 2, func() []string {
			return residualVariables([]int{2, 4, 8, 16, 32, 32}, 5, []int{32, 32, 16, 8, 4, 2}, false)
		}},
		{"conv32", true, 4, jointVariables},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, err := Named(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			spec.Width, spec.Latent = tt.width, 5
			n, err := spec.Build()
			if err != nil {
				t.Fatal(err)
			}
			c := nn.NewContext(nn.Train, 1)
			v := c.Input("v", graph.T(graph.F32, 2, 3, spec.Size, spec.Size))
			if tt.joint {
				n.(Joint).JointEnergy(c, v, c.Input("h", graph.T(graph.F32, 2, 5)))
			} else {
				n.Energy(c, v)
				mean, _ := n.Inference(c, v)
				n.Generator(c, mean)
			}
			if err := c.Err(); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range c.Variables() {
				role := map[nn.Role]string{nn.Weight: "weight", nn.Buffer: "buffer"}[v.Role]
				got = append(got, fmt.Sprint(v.Name, " ", v.Type, " ", role))
			}
			want := tt.want()
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("variable %d differs: got\n%s\nwant\n%s", i, strings.Join(got[min(i, len(got)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
				}
			}
		})
	}
}

// list collects lines of variables.
type list []string

func (l *list) add(name, shape, role string) { *l = append(*l, name+" f32["+shape+"] "+role) }

// spectral are the variables of a layer with spectral norm, whose weight is
// (out, in, k, k), or (out, in) where k is 0.
func (l *list) spectral(name string, out, in, k int, bias bool) {
	shape, rest := fmt.Sprintf("%d,%d,%d,%d", out, in, k, k), in*k*k
	if k == 0 {
		shape, rest = fmt.Sprintf("%d,%d", out, in), in
	}
	l.add(name+".weight_orig", shape, "weight")
	l.add(name+".weight_u", fmt.Sprint(out), "buffer")
	l.add(name+".weight_v", fmt.Sprint(rest), "buffer")
	if bias {
		l.add(name+".bias", fmt.Sprint(out), "weight")
	}
}

func (l *list) plain(name string, out, in, k int) {
	l.add(name+".weight", fmt.Sprintf("%d,%d,%d,%d", out, in, k, k), "weight")
	l.add(name+".bias", fmt.Sprint(out), "weight")
}

func (l *list) norm(name string, c int) {
	for _, v := range []string{"weight", "bias"} {
		l.add(name+"."+v, fmt.Sprint(c), "weight")
	}
	for _, v := range []string{"running_mean", "running_var"} {
		l.add(name+"."+v, fmt.Sprint(c), "buffer")
	}
}

// residualVariables are those of E and Q with blocks of these channels, of which
// the first shortcuts have layers, and of G, whose first channels are those
// before the blocks.
func residualVariables(down []int, shortcuts int, up []int, headBias bool) []string {
	var l list
	for _, net := range []string{"energy", "inference"} {
		in := 3
		for i, out := range down {
			block, mid := fmt.Sprintf("%s.block%d.", net, i+1), in
			if i == 0 {
				mid = out
			}
			l.spectral(block+"conv1", mid, in, 3, true)
			l.spectral(block+"conv2", out, mid, 3, true)
			if i < shortcuts {
				l.spectral(block+"shortcut", out, in, 1, true)
			}
			in = out
		}
		if net == "energy" {
			l.spectral("energy.out", 1, in, 0, true)
		} else {
			l.spectral("inference.mean", 5, in, 0, headBias)
			l.spectral("inference.logvar", 5, in, 0, headBias)
		}
	}
	l.add("generator.in.weight", fmt.Sprintf("%d,5", up[0]*16), "weight")
	l.add("generator.in.bias", fmt.Sprint(up[0]*16), "weight")
	for i, out := range up[1:] {
		block := fmt.Sprintf("generator.block%d.", i+1)
		l.norm(block+"bn1", up[i])
		l.plain(block+"conv1", out, up[i], 3)
		l.norm(block+"bn2", out)
		l.plain(block+"conv2", out, out, 3)
		l.plain(block+"shortcut", out, up[i], 1)
	}
	last := up[len(up)-1]
	l.norm("generator.bn", last)
	l.plain("generator.out", 3, last, 3)
	return l
}

func jointVariables() []string {
	var l list
	for i, s := range [][3]int{{4, 3, 3}, {4, 4, 4}, {8, 4, 3}, {8, 8, 4}, {16, 8, 3}, {16, 16, 4}, {32, 16, 3}, {32, 32, 4}} {
		l.spectral(fmt.Sprintf("energy.conv%d", i+1), s[0], s[1], s[2], true)
	}
	for i, s := range [][2]int{{4, 5}, {4, 4}, {8, 4}, {8, 8}, {16, 8}, {16, 16}, {32, 16}, {32, 32}} {
		l.spectral(fmt.Sprintf("energy.latent%d", i+1), s[0], s[1], 1, true)
	}
	l.spectral("energy.joint1", 64, 64, 1, true)
	l.spectral("energy.joint2", 1, 64, 1, true)
	return l
}
