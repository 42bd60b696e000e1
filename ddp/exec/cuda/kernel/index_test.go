package kernel

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebtrain/ddp/exec"
	"ebtrain/ddp/exec/plan"
	"ebtrain/ddp/graph"
)

// indexCase is one of the four ops that have indices: images of pixels of columns, where rows
// of a table are the pixels of one image, and a row's index is that of all of its columns.
type indexCase struct {
	op                         graph.Op
	images, few, many, columns int // pixels of an image on either side: few has an index for each
	single                     bool
	idxDims, fewDims, manyDims graph.Shape
	scatters                   bool
	idx                        []int // in memory's order
	bad                        int   // the first that is out of range; -1: none is
	table                      string
}

func (c *indexCase) count() int {
	n := c.images * c.few
	if c.single {
		n *= c.columns
	}
	return n
}

// someIndices are tables that are shorter than their indices, and longer, and images.
func someIndices() (list []indexCase) {
	rows := func(op graph.Op, scatters bool, few, many int) indexCase {
		return indexCase{op: op, images: 1, few: few, many: many, columns: 3, scatters: scatters,
			idxDims: graph.D(few), fewDims: graph.D(few, 3), manyDims: graph.D(many, 3), table: fmt.Sprintf("a table of %d rows", many)}
	}
	planes := func(op graph.Op, scatters bool) indexCase {
		return indexCase{op: op, images: 2, few: 5 * 7, many: 4 * 3, columns: 9, single: true, scatters: scatters,
			idxDims: graph.D(2, 5, 7, 9), fewDims: graph.D(2, 5, 7, 9), manyDims: graph.D(2, 4, 3, 9), table: "a plane of 12 pixels"}
	}
	return []indexCase{
		rows(graph.Gather{}, false, 700, 5), rows(graph.Gather{}, false, 20, 600),
		rows(graph.ScatterAdd{Rows: 5}, true, 700, 5), rows(graph.ScatterAdd{Rows: 600}, true, 20, 600),
		planes(graph.PlaneGather{}, false), planes(graph.PlaneScatter{H: 4, W: 3}, true),
	}
}

// TestIndicesOutOfRange: of all indices out of range the first is told, by its place and value,
// whatever order blocks run in; what a gather has in its place is 0, a scatter leaves it out,
// and all else is as if it were not there.
func TestIndicesOutOfRange(t *testing.T) {
	d := newDevice(t)
	var launches []Launch
	var makers []*making
	for _, c := range someIndices() {
		few, many := plan.Value{DType: graph.F32, Dims: c.fewDims}, plan.Value{DType: graph.F32, Dims: c.manyDims}
		if !c.scatters {
			few, many = many, few
		}
		m := makingOf(t, oneStep(c.op, few, plan.Value{DType: graph.I32, Dims: c.idxDims}, many), false)
		l, err := m.step()
		if err != nil {
			t.Fatal(err)
		}
		launches, makers = append(launches, l...), append(makers, m)
	}
	compiler.prepare(t, slices.Clone(launches))
	for k, c := range someIndices() {
		n := c.count()
		for _, bad := range []map[int]int{{}, {n - 1: c.many}, {0: -1}, {n / 2: -1 << 31, n - 2: -1}, {n - 3: 1<<31 - 1, n / 3: c.many, n - 1: -1}} {
			c.idx, c.bad = make([]int, n), -1
			for i := range c.idx {
				c.idx[i] = i * 7 % c.many
				if v, ok := bad[i]; ok {
					if c.idx[i] = v; c.bad < 0 {
						c.bad = i
					}
				}
			}
			for d.order = range 2 {
				if err := c.check(d, makers[k], &launches[k]); err != nil {
					t.Errorf("%v of %d indices, %v out of range, order %d: %v", c.op, n, bad, d.order, err)
				}
				d.used = 0
			}
		}
	}
}

// place is where the number of index i is said to be: images are told of as (N, C, H, W).
func (c *indexCase) place(i int) int {
	if !c.single {
		return i
	}
	pixel, column := i/c.columns, i%c.columns
	return (pixel/c.few*c.columns+column)*c.few + pixel%c.few
}

// check runs the step.
func (c *indexCase) check(d *device, m *making, l *Launch) error {
	in, out := c.manyDims, c.fewDims
	if c.scatters {
		in, out = out, in
	}
	x, y := exec.NewTensor(graph.Type{DType: graph.F32, Shape: in}), exec.NewTensor(graph.Type{DType: graph.F32, Shape: out})
	for i := range in.Len() {
		x.F32()[i] = float32(i%100 + 1)
	}
	for e := range c.images * c.few * c.columns {
		u, column := e/c.columns, e%c.columns
		at := u
		if c.single {
			at = e
		}
		i := c.idx[at]
		if i < 0 || i >= c.many {
			continue
		}
		far := (u/c.few*c.many+i)*c.columns + column
		if c.scatters {
			y.F32()[far] += x.F32()[e]
		} else {
			y.F32()[e] = x.F32()[far]
		}
	}
	at := [4]int{d.alloc(len(x.Bytes())), d.alloc(4 * len(c.idx)), d.alloc(len(y.Bytes())), d.alloc(FaultBytes)}
	copy(d.memory[at[0]:], x.Bytes())
	for i, v := range c.idx {
		binary.LittleEndian.PutUint32(d.memory[at[1]+4*i:], uint32(int32(v)))
	}
	fault := d.memory[at[3]:][:FaultBytes]
	clear(fault)
	d.within = []piece{{at[0], len(x.Bytes()), false}, {at[1], 4 * len(c.idx), false}, {at[2], len(y.Bytes()), true}, {at[3], FaultBytes, true}}
	if err := d.run(l, Memory{Value: func(v int) uint64 { return deviceBase + uint64(at[v]) }, Fault: deviceBase + uint64(at[3])}); err != nil {
		return err
	}
	got := exec.NewTensor(y.Type)
	copy(got.Bytes(), d.memory[at[2]:])
	for i, w := range y.F32() {
		if got.F32()[i] != w {
			return fmt.Errorf("element %d is %v, want %v", i, got.F32()[i], w)
		}
	}
	err := FaultOf(m.p, fault)
	if c.bad < 0 {
		return err
	}
	if want := fmt.Sprintf("index %d at %d is outside %s", c.idx[c.bad], c.place(c.bad), c.table); err == nil || !strings.HasSuffix(err.Error(), want) {
		return fmt.Errorf("told is %w, want %s", err, want)
	}
	return nil
}
