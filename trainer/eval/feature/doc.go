// Package feature turns pictures into the features that samples are judged by: of
// frozen networks drawn by a seed (Random), of a small classifier that was trained on
// a data set's labels (Classifier), and of networks that are defined elsewhere (Given).
//
// A Net is plain data. An Extractor is a Net on a device; ranks share the pictures
// of a set by their numbers, and each gets the features of all, with the same bits
// whatever the number of ranks. An Extractor and a Multiplier belong to one
// goroutine; a Cache may be used from any.
//
// Pictures are (n, C, H, W) in [−1, 1].
package feature

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Size is that of the pictures: channels, rows and columns.
type Size struct{ C, H, W int }

// Len is the number of values of a picture.
func (s Size) Len() int { return s.C * s.H * s.W }

func (s Size) String() string { return fmt.Sprintf("%d×%d×%d", s.C, s.H, s.W) }

// Net is a frozen network.
type Net struct {
	Name   string // "random 1", "classifier", "Inception-v3"
	Digest string // of all that defines its numbers
	Size   Size   // of the pictures that it takes
	// Classes is how many classes it tells apart; 0 if it is no classifier.
	Classes int

	trunk  Network
	values map[string]*exec.Tensor // of its variables; nil: drawn by seed
	seed   uint64
}

// Network is what a Net's features are made by.
type Network interface {
	// Dim is the number of features.
	Dim() int
	// Features are (n, Dim), of pictures (n, C, H, W).
	Features(c *nn.Context, x graph.ID) graph.ID
}

// Teller is a Network that tells classes apart by itself.
type Teller interface {
	// Logits are (n, Classes), of features.
	Logits(c *nn.Context, features graph.ID) graph.ID
}

// Given is a network that is defined elsewhere, with the values of its variables. The
// digest names all that defines its numbers.
func Given(name, digest string, s Size, classes int, n Network, values map[string]*exec.Tensor) Net {
	return Net{Name: name, Digest: digest, Size: s, Classes: classes, trunk: n, values: values}
}

// Ensemble is how many random networks judge together.
const Ensemble = 5

// Random is the random network of a number: convolutions of 3×3 with stride 2,
// leaky ReLU of 0.2 after each, down to a side of 2, weights N(0, 2/fan-in). Its
// features are the mean of every channel of every layer. That untrained networks
// rank sets of pictures is no theorem: take several, and look at the controls.
func Random(number int, s Size) Net {
	t := convolutions{Scope: "random", Size: s, Widths: widths(s, 16, 64), Slope: 0.2}
	n := Net{Name: fmt.Sprintf("random %d", number), Size: s, trunk: t, seed: uint64(number)}
	n.Digest = digest("random", t, n.seed)
	return n
}

// widths are the channels of the layers: doubled at each up to most, as many layers
// as bring the shorter side to 2.
func widths(s Size, first, most int) []int {
	var w []int
	for side := min(s.H, s.W); side > 2; side = (side + 1) / 2 {
		w = append(w, min(most, first<<len(w)))
	}
	return w
}

// Vector says that they are no pictures but points, vectors of values.
func (s Size) Vector() bool { return s.C == 1 && s.H == 1 }

// Validate says what is wrong with the pictures' size.
func (s Size) Validate() error {
	const least = 8
	if s.C < 1 || min(s.H, s.W) < least {
		return fmt.Errorf("features are of pictures with sides of at least %d, not of %v", least, s)
	}
	return nil
}

// convolutions are a run of them.
type convolutions struct {
	Scope  string
	Size   Size
	Widths []int
	Slope  float64 // of the leaky ReLU
	// Last says that the features are of the last layer only.
	Last bool
}

// Features are (n, Dim).
func (t convolutions) Features(c *nn.Context, x graph.ID) (f graph.ID) {
	c.Scope(t.Scope, func() {
		var means []graph.ID
		in := t.Size.C
		for i, width := range t.Widths {
			conv := nn.Conv2d{Name: fmt.Sprintf("conv%d", i+1), In: in, Out: width, Kernel: 3, Stride: 2, Pad: 1, Init: he(in * 9)}
			x = c.LeakyRelu(conv.Apply(c, x), t.Slope)
			if !t.Last || i == len(t.Widths)-1 {
				means = append(means, c.Mean(x, 2, 3))
			}
			in = width
		}
		f = means[0]
		if len(means) > 1 {
			f = c.Concat(1, means...)
		}
	})
	return f
}

// Dim is the number of features.
func (t convolutions) Dim() (n int) {
	if t.Last {
		return t.Widths[len(t.Widths)-1]
	}
	for _, w := range t.Widths {
		n += w
	}
	return n
}

// digest names what defines a network.
func digest(parts ...any) string {
	b, err := json.Marshal(parts)
	if err != nil { // of numbers and words
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
