package feature

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"ebtrain/data"
	"ebtrain/data/atomicfile"
	"ebtrain/data/safetensors"
	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/model/nn"
)

// Keys of a classifier's metadata.
const (
	metaKind     = "ebtrain"
	metaClasses  = "classes"
	metaSize     = "size"
	metaData     = "data" // digest of the split that it was trained on
	metaAccuracy = "accuracy"
	metaSum      = "sha256" // of the network, the data and the accuracy, which the format has no checksum for

	kindAny        = "classifier of pictures, "
	kindClassifier = kindAny + "2"
	kindUnsummed   = kindAny + "1" // of older programs: without metaSum
)

// names are those of the trained variables, sorted.
func (n Net) names() []string { return slices.Sorted(maps.Keys(n.values)) }

// finite reports a weight that is not.
func (n Net) finite() error {
	for _, name := range n.names() {
		for i, v := range n.values[name].F32() {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("value %d of the classifier's %s is %v", i, name, v)
			}
		}
	}
	return nil
}

// Save writes a classifier, with the digest of the data that it was trained on and
// the accuracy that it has on others.
func (n Net) Save(file, data string, accuracy float64) error {
	var tensors []safetensors.Tensor
	for _, name := range n.names() {
		v := n.values[name]
		var shape []int64
		for i := range v.Type.Shape.Rank() {
			shape = append(shape, int64(v.Type.Shape.At(i)))
		}
		tensors = append(tensors, safetensors.Float32s(name, shape, v.F32()))
	}
	meta := map[string]string{
		metaKind: kindClassifier, metaClasses: fmt.Sprint(n.Classes), metaSize: n.Size.String(),
		metaData: data, metaAccuracy: strconv.FormatFloat(accuracy, 'g', 4, 64),
	}
	meta[metaSum] = n.sum(meta)
	return atomicfile.Write(file, func(w io.Writer) error { return safetensors.Write(w, tensors, meta) })
}

// sum is the checksum of a file with these metadata.
func (n Net) sum(meta map[string]string) string {
	return digest(n.weightsDigest(), meta[metaData], meta[metaAccuracy])
}

// CheckReplace reports a file that is there and is no classifier: Save would replace it.
func CheckReplace(file string) error {
	st, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	is := false
	if st.Mode().IsRegular() { // all else is not worth opening, and may never end
		err = safetensors.ReadFile(file, func(f *safetensors.File) error {
			is = strings.HasPrefix(f.Metadata()[metaKind], kindAny)
			return nil
		})
	}
	if err != nil || !is {
		return errors.New("it is there already, and no classifier, so it is not replaced: give another name, as in cifar10.safetensors, or remove it first")
	}
	return nil
}

// Load reads a classifier of pictures of a size, that was trained on the data of
// that digest: any other is refused.
func Load(file string, s Size, digest string) (n Net, err error) {
	err = safetensors.ReadFile(file, func(f *safetensors.File) error {
		meta := f.Metadata()
		classes, err := strconv.Atoi(meta[metaClasses])
		switch {
		case meta[metaKind] == kindUnsummed:
			return errors.New("it is of an older program, which kept no checksum, so damage would go unseen: train another with evaluate --train-classifier")
		case meta[metaKind] != kindClassifier || err != nil || classes < 2:
			return errors.New("it is no classifier: want a file made by evaluate --train-classifier")
		case meta[metaSize] != s.String():
			return fmt.Errorf("it is a classifier of pictures of %s, and these are of %v", meta[metaSize], s)
		case meta[metaData] != digest:
			return fmt.Errorf("it was trained on other data: on those of digest %s, and these have %s: train one on these with evaluate --train-classifier", data.Brief(meta[metaData]), data.Brief(digest))
		}
		n = Net{Name: "classifier", Size: s, Classes: classes, trunk: classifierTrunk(s)}
		if err := n.read(f); err != nil {
			return fmt.Errorf("%w: train another with evaluate --train-classifier", err)
		}
		if got, want := n.sum(meta), meta[metaSum]; got != want {
			return fmt.Errorf("it is damaged: its SHA-256 is %s, expected %s: copy it again, or train another with evaluate --train-classifier", got, want)
		}
		return nil
	})
	if err == nil {
		n.Digest = n.weightsDigest()
	}
	return n, err
}

// read reads the weights.
func (n *Net) read(f *safetensors.File) error {
	c := nn.NewContext(nn.Eval, 1)
	n.logits(c, c.Input(inputPictures, graph.T(graph.F32, 1, n.Size.C, n.Size.H, n.Size.W)))
	if c.Err() != nil {
		return c.Err()
	}
	n.values = map[string]*exec.Tensor{}
	for _, v := range c.Variables() {
		info, ok := f.Info(v.Name)
		switch {
		case !ok:
			return fmt.Errorf("it lacks the layer %s", v.Name)
		case info.DType != safetensors.F32 || !slices.EqualFunc(info.Shape, shapeOf(v.Type), func(a int64, b int) bool { return a == int64(b) }):
			return fmt.Errorf("the layer %s is %s %v, want F32 %v", v.Name, info.DType, info.Shape, shapeOf(v.Type))
		}
		t := exec.NewTensor(v.Type)
		if err := f.Float32(v.Name, t.F32()); err != nil {
			return err
		}
		n.values[v.Name] = t
	}
	return n.finite()
}

func shapeOf(t graph.Type) (s []int) {
	for i := range t.Shape.Rank() {
		s = append(s, t.Shape.At(i))
	}
	return s
}
