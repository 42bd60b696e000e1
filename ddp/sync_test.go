package ddp

import (
	"fmt"
	"reflect"
	"testing"

	"ebtrain/collective"
	"ebtrain/ddp/ddptest"
	"ebtrain/ddp/graph"
)

func TestBuckets(t *testing.T) {
	const first, later, last = firstBucketBytes / 4, bucketBytes / 4, lastBucketBytes / 4 // in F32 elements
	for _, tt := range []struct {
		name  string
		sizes []int // elements of each gradient
		want  [][]int
	}{
		{"none", nil, nil},
		{"one", []int{10}, [][]int{{0}}},
		{"last first", []int{1, 2, 3}, [][]int{{2, 1, 0}}},
		{"exactly the first bucket", []int{1, first - 4, 4}, [][]int{{2, 1}, {0}}},
		{"one element too many", []int{1, first - 3, 4}, [][]int{{2}, {1, 0}}},
		{"later buckets are larger", []int{1, 5, later - 5, first, 1}, [][]int{{4}, {3}, {2, 1}, {0}}},
		{"exactly a later bucket", []int{1, later - first, first, first}, [][]int{{3}, {2, 1}, {0}}},
		{"larger than a bucket", []int{1, later + 1, 1}, [][]int{{2}, {1}, {0}}},
		{"large last gradient", []int{1, later + 1}, [][]int{{1}, {0}}},
		{"the last is small", []int{1, last - 1, last, 1}, [][]int{{3}, {2}, {1, 0}}},
		{"what is cut off is small enough", []int{1, last - 2, 1, first}, [][]int{{3}, {2, 1, 0}}},
		{"the last gradient is large", []int{last + 1, 1, first}, [][]int{{2}, {1, 0}}},
		{"empty gradients", []int{0, 1, 0}, [][]int{{2, 1, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b graph.Builder
			grads := make([]graph.ID, len(tt.sizes))
			for i, n := range tt.sizes {
				grads[i] = b.Input(fmt.Sprint(i), graph.T(graph.F32, n))
			}
			if got := buckets(&b, grads); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// A bucket's limit is bytes, whatever the element type.
func TestBucketsCountBytes(t *testing.T) {
	var b graph.Builder
	wide := []graph.ID{b.Input("a", graph.T(graph.F64, firstBucketBytes/8)), b.Input("b", graph.T(graph.F64, 1))}
	if got, want := buckets(&b, wide), [][]int{{1}, {0}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSyncAlone(t *testing.T) {
	var b graph.Builder
	grads := []graph.ID{b.Input("a", graph.T(graph.F32, 2)), b.Input("b", graph.T(graph.F32, 3))}
	if got := Sync(&b, 1, "net", grads); !reflect.DeepEqual(got, grads) {
		t.Errorf("got %v, want %v", got, grads)
	}
}

// Every gradient becomes its mean over the ranks, in its place; there is one
// all-reduce for each bucket.
func TestSync(t *testing.T) {
	const world = 3
	sizes := []int{4, firstBucketBytes / 4, 1, 3}
	outs := make([]ddptest.Values, world)
	err := ddptest.Each(world, func(r int, comm collective.Comm) error {
		var b graph.Builder
		in := ddptest.Values{}
		var grads []graph.ID
		for i, n := range sizes {
			name := fmt.Sprint(i)
			grads = append(grads, b.Input(name, graph.T(graph.F64, n)))
			in[name] = ddptest.Noise(uint32(10*r+i), n)
		}
		var labels []string
		for i, m := range Sync(&b, world, "net", grads) {
			b.Output(fmt.Sprint(i), m)
			op := b.Node(m).Op.(graph.AllReduce)
			labels = append(labels, op.Label)
		}
		if want := []string{"net/bucket 1", "net/bucket 1", "net/bucket 0", "net/bucket 0"}; !reflect.DeepEqual(labels, want) {
			return fmt.Errorf("buckets %q, want %q", labels, want)
		}
		g, err := b.Build()
		if err != nil {
			return err
		}
		outs[r], err = ddptest.Run(g, nil, comm, in)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range sizes {
		want := make([]float64, n)
		for r := range world {
			for j, v := range ddptest.Noise(uint32(10*r+i), n) {
				want[j] += v / world
			}
		}
		for r := range world {
			if err := ddptest.Near(outs[r][fmt.Sprint(i)], want, 1e-14); err != nil {
				t.Errorf("rank %d, gradient %d: %v", r, i, err)
			}
		}
	}
}
