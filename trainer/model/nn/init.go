package nn

import (
	"hash/fnv"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/graph"
	"ebtrain/ddp/philox"
)

// Init fills a new variable of the given shape, which is zero, from the stream
// n. A nil Init leaves it zero.
type Init func(dst []float64, s graph.Shape, n philox.Name)

// Zeros and Ones are constant.
func Zeros([]float64, graph.Shape, philox.Name) {}

func Ones(dst []float64, _ graph.Shape, _ philox.Name) {
	for i := range dst {
		dst[i] = 1
	}
}

// Normal is N(0, sd²).
func Normal(sd float64) Init {
	return func(dst []float64, _ graph.Shape, n philox.Name) {
		n.Normal(dst)
		for i := range dst {
			dst[i] *= sd
		}
	}
}

// Uniform is uniform on (−bound, bound).
func Uniform(bound float64) Init {
	return func(dst []float64, _ graph.Shape, n philox.Name) {
		n.Uniform(dst)
		for i := range dst {
			dst[i] = bound * (2*dst[i] - 1)
		}
	}
}

// FanIn is PyTorch's default for weights and biases of linear and
// convolutional layers: uniform on ±1/√fanIn.
func FanIn(fanIn int) Init { return Uniform(1 / math.Sqrt(float64(fanIn))) }

// XavierNormal is Glorot's normal initialisation of a weight between so many numbers
// and so many others: N(0, 2/(in + out)). Those of a convolution are its channels
// times its kernel's area.
func XavierNormal(in, out int) Init { return Normal(math.Sqrt(2 / float64(in+out))) }

// UnitVector is a random direction: N(0, I) scaled to length one.
func UnitVector(dst []float64, _ graph.Shape, n philox.Name) {
	n.Normal(dst)
	sum := 0.0
	for _, v := range dst {
		sum += v * v
	}
	for i := range dst {
		dst[i] /= math.Sqrt(sum)
	}
}

// Value is the initial value of v under a seed. It depends on the variable's
// name, not on the order in which variables are made.
func (v Variable) Value(seed uint64) *exec.Tensor {
	h := fnv.New64a()
	h.Write([]byte(v.Name)) // a hash never fails to take a write
	name := philox.Name{Seed: seed, Purpose: philox.Init, Step: uint32(h.Sum64() >> 32), Sample: uint32(h.Sum64())}
	t := exec.NewTensor(v.Type)
	if v.Init == nil {
		return t
	}
	vals := make([]float64, v.Type.Shape.Len())
	v.Init(vals, v.Type.Shape, name)
	if v.Type.DType == graph.F32 {
		dst := t.F32()
		for i, x := range vals {
			dst[i] = float32(x)
		}
		return t
	}
	for i, x := range vals {
		t.SetAt(i, x)
	}
	return t
}

// Initialise creates in vars every variable that is not there yet, in order,
// with its initial value under seed. Values are made on all cores, a few
// variables ahead.
func Initialise(vars exec.Vars, specs []Variable, seed uint64) error {
	missing := slices.DeleteFunc(slices.Clone(specs), func(v Variable) bool {
		_, ok := vars.Type(v.Name)
		return ok
	})
	ahead := 4 * runtime.GOMAXPROCS(0) // variables differ in size and cost
	values := make([]chan *exec.Tensor, len(missing))
	drawn := 0 // numbers
	var wg sync.WaitGroup
	defer wg.Wait()
	begin := func(i int) {
		if i < len(missing) {
			values[i] = make(chan *exec.Tensor, 1) // room for a value that nobody takes
			wg.Go(func() { values[i] <- missing[i].Value(seed) })
		}
	}
	for i := range ahead {
		begin(i)
	}
	for i, v := range missing {
		value := <-values[i]
		begin(i + ahead)
		if err := vars.Set(v.Name, value); err != nil {
			return err
		}
		drawn += v.Type.Shape.Len()
	}
	// The float64 draws are garbage twice the size of the variables: it goes
	// before a program asks for its memory, if it is much. What is given back to the
	// system is zeroed again, page by page, as it is used.
	if drawn > muchDrawn {
		debug.FreeOSMemory()
	}
	return nil
}

// muchDrawn is how many numbers leave garbage of 32 MiB.
const muchDrawn = 32 << 20 / 8
