package inception

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nlpodyssey/gopickle/pytorch"
	"github.com/nlpodyssey/gopickle/types"

	"ebtrain/data/atomicfile"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/eval/feature"
	"ebtrain/trainer/model/nn"
)

// tensors are those of a file of weights, by name.
type tensors map[string]tensor

type tensor struct {
	shape []int
	x     []float32
}

// Load is the network for pictures of a size, with the weights of file, which must
// be the published one.
func Load(file string, s feature.Size) (feature.Net, error) {
	if s.C != channels {
		return feature.Net{}, fmt.Errorf("Inception-v3 sees colours: want pictures of %d channels, these are of %v", channels, s) //nolint:staticcheck // a name
	}
	if err := s.Validate(); err != nil {
		return feature.Net{}, err
	}
	digest, err := digestOf(file)
	if err != nil {
		return feature.Net{}, err
	}
	if digest != Digest {
		return feature.Net{}, fmt.Errorf("%s is not %s: its SHA-256 is %.16s…, want %.16s…: fetch %s", file, File, digest, Digest, Source)
	}
	all, err := read(file)
	if err != nil {
		return feature.Net{}, fmt.Errorf("%s: %w", file, err)
	}
	return of(all, s, digest)
}

func digestOf(file string) (_ string, err error) {
	f, err := atomicfile.Open(file)
	if err != nil {
		return "", fmt.Errorf("%w: want the weights %s: fetch %s", err, File, Source)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// read reads the float tensors of a state_dict that PyTorch has written; counters of
// another type are left out.
func read(file string) (tensors, error) {
	top, err := pytorch.Load(file)
	if err != nil {
		return nil, err
	}
	all := tensors{}
	switch d := top.(type) {
	case *types.OrderedDict:
		for key, e := range d.Map {
			all.add(key, e.Value)
		}
	case *types.Dict:
		for _, e := range *d {
			all.add(e.Key, e.Value)
		}
	default:
		return nil, fmt.Errorf("it holds a %T, want a state_dict", top)
	}
	return all, nil
}

// add adds a float tensor whose elements lie one after the other, as saved ones do.
func (all tensors) add(key, value any) {
	name, named := key.(string)
	t, ok := value.(*pytorch.Tensor)
	if !named || !ok {
		return
	}
	s, ok := t.Source.(*pytorch.FloatStorage)
	n := 1
	for _, k := range t.Size {
		n *= k
	}
	if !ok || !slices.Equal(t.Stride, contiguous(t.Size)) || t.StorageOffset < 0 || t.StorageOffset+n > len(s.Data) {
		return // what needs it says that it is missing
	}
	all[name] = tensor{t.Size, s.Data[t.StorageOffset : t.StorageOffset+n]}
}

func contiguous(size []int) []int {
	stride, n := make([]int, len(size)), 1
	for i := len(size) - 1; i >= 0; i-- {
		stride[i] = n
		n *= size[i]
	}
	return stride
}

// of is the network with the weights of a file, of that digest.
func of(all tensors, s feature.Size, digest string) (feature.Net, error) {
	n := network{}
	c := nn.NewContext(nn.Eval, 1)
	n.Logits(c, n.Features(c, c.Input("pictures", graph.T(graph.F32, 1, s.C, s.H, s.W))))
	if c.Err() != nil {
		return feature.Net{}, c.Err()
	}
	values := map[string]*exec.Tensor{}
	for _, v := range c.Variables() {
		var err error
		if values[v.Name], err = Tensors(all.get).Value(v); err != nil {
			return feature.Net{}, err
		}
	}
	return feature.Given("Inception-v3", fmt.Sprintf("%s for %v", digest, s), s, classes, n, values), nil
}

// Tensors gives the values of the tensors of a file of weights, by name; one that is not
// there or not of that shape is an error.
type Tensors func(name string, shape []int) ([]float32, error)

// Value is that of a variable of Resize, Layers or Logits.
func (get Tensors) Value(v nn.Variable) (*exec.Tensor, error) {
	if v.Name == rowsName || v.Name == columnsName {
		return interpolation(v.Type.Shape.At(1)), nil
	}
	t := exec.NewTensor(v.Type)
	return t, get.fold(v.Name, v.Type, t.F32())
}

// fold fills a variable of a layer: weight and bias of a convolution hold the
// normalisation that follows it, y = γ(conv − μ)/√(σ² + ε) + β.
func (get Tensors) fold(name string, typ graph.Type, out []float32) error {
	layer, part := cutLast(name)
	if layer == "fc" {
		w, err := get(name, shapeOf(typ))
		copy(out, w)
		return err
	}
	width := []int{typ.Shape.At(0)}
	var of [4][]float32
	for i, what := range []string{"weight", "bias", "running_mean", "running_var"} {
		var err error
		if of[i], err = get(layer+".bn."+what, width); err != nil {
			return err
		}
	}
	scale := func(k int) float64 { return float64(of[0][k]) / math.Sqrt(float64(of[3][k])+epsilon) }
	if part == "bias" {
		for k := range out {
			out[k] = float32(float64(of[1][k]) - float64(of[2][k])*scale(k))
		}
		return nil
	}
	w, err := get(layer+".conv.weight", shapeOf(typ))
	if err != nil {
		return err
	}
	per := len(out) / width[0]
	for k := range width[0] {
		f := scale(k)
		for i := k * per; i < (k+1)*per; i++ {
			out[i] = float32(float64(w[i]) * f)
		}
	}
	return nil
}

// get is a tensor of a shape, whose values are finite.
func (all tensors) get(name string, shape []int) ([]float32, error) {
	t, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("the weights lack %s", name)
	}
	if !slices.Equal(t.shape, shape) {
		return nil, fmt.Errorf("%s of the weights is %v, want %v", name, t.shape, shape)
	}
	for i, v := range t.x {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("value %d of the weights' %s is %v", i, name, v)
		}
	}
	return t.x, nil
}

func shapeOf(t graph.Type) (s []int) {
	for i := range t.Shape.Rank() {
		s = append(s, t.Shape.At(i))
	}
	return s
}

// cutLast cuts a name at its last point.
func cutLast(name string) (before, after string) {
	i := strings.LastIndexByte(name, '.')
	return name[:max(i, 0)], name[i+1:]
}
