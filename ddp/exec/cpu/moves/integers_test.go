package moves

import (
	"slices"
	"testing"
	"unsafe"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/cpu/array"
	"ebtrain/ddp/exec/cpu/threads"
	"ebtrain/ddp/graph"
)

// placeOf is where a tensor lies.
func placeOf(t *exec.Tensor) array.Place {
	return array.Place{Mem: unsafe.Pointer(unsafe.SliceData(t.Bytes())), DType: t.Type.DType, Dims: t.Type.Shape}
}

// do does an op.
func do(t *testing.T, op any, out *exec.Tensor, in ...*exec.Tensor) {
	t.Helper()
	team := threads.NewTeam(2)
	defer team.Close()
	var places []array.Place
	for _, x := range in {
		places = append(places, placeOf(x))
	}
	k, err := New(threads.NewJobs(team, 0), op, places, []array.Place{placeOf(out)})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(); err != nil {
		t.Fatal(err)
	}
}

// numbersOf are the elements of a tensor.
func numbersOf(t *exec.Tensor) (all []float64) {
	for i := range t.Type.Shape.Len() {
		all = append(all, t.At(i))
	}
	return all
}

// Rows of every type are added up where two go to one place.
func TestScatterOfAllTypes(t *testing.T) {
	idx := exec.NewTensor(graph.T(graph.I32, 3))
	copy(idx.I32(), []int32{2, 0, 2})
	for _, dt := range []graph.DType{graph.F32, graph.F64, graph.BF16, graph.I32, graph.I64, graph.U8} {
		unit := 1.0
		if dt == graph.I64 {
			unit = -1 << 40
		}
		x, y := exec.NewTensor(graph.T(dt, 3, 2)), exec.NewTensor(graph.T(dt, 3, 2))
		for i := range 6 {
			x.SetAt(i, float64(i+1)*unit)
			y.SetAt(i, 99)
		}
		do(t, graph.ScatterAdd{Rows: 3}, y, x, idx)
		if got, want := numbersOf(y), []float64{3 * unit, 4 * unit, 0, 0, (1 + 5) * unit, (2 + 6) * unit}; !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", dt, got, want)
		}
	}
}

// Integers wrap around, those that no float holds, too.
func TestCastsOfIntegers(t *testing.T) {
	x := exec.NewTensor(graph.T(graph.I64, 4))
	copy(x.I64(), []int64{1<<53 + 1, -1, 1<<40 + 300, -1 << 63})
	small, byte := exec.NewTensor(graph.T(graph.I32, 4)), exec.NewTensor(graph.T(graph.U8, 4))
	do(t, graph.Cast{To: graph.I32}, small, x)
	do(t, graph.Cast{To: graph.U8}, byte, x)
	if got, want := small.I32(), []int32{1, -1, 300, 0}; !slices.Equal(got, want) {
		t.Errorf("i32: %v, want %v", got, want)
	}
	if got, want := byte.U8(), []uint8{1, 255, 44, 0}; !slices.Equal(got, want) {
		t.Errorf("u8: %v, want %v", got, want)
	}
}
