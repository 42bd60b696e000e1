package enginetest

import (
	"slices"

	"ebtrain/ddp/exec/cpu/linalg/engine"
	"ebtrain/ddp/graph"
)

// ConvCase is a named geometry.
type ConvCase struct {
	Name string
	engine.ConvProblem
}

// NewConvCase fills in the output extent of n images of c×h×w.
func NewConvCase(name string, n, c, h, w, o int, conv graph.Conv) ConvCase {
	oh, ow := conv.Out(h, w)
	return ConvCase{name, engine.ConvProblem{Conv: conv, N: n, C: c, H: h, W: w, O: o, OH: oh, OW: ow}}
}

func square(name string, n, c, h, w, o, k, s, p int) ConvCase {
	return NewConvCase(name, n, c, h, w, o, graph.NewConv(k, s, p))
}

func grouped(name string, n, c, h, w, o, k, s, p, groups int) ConvCase {
	conv := graph.NewConv(k, s, p)
	conv.Groups = groups
	return NewConvCase(name, n, c, h, w, o, conv)
}

// Convs are the geometries of the suite: small, and every one odd in its own
// way.
func Convs() []ConvCase {
	w := func(kh, kw, sh, sw, pt, pb, pl, pr, dh, dw int) graph.Conv {
		return graph.Conv{Window: graph.Window{KH: kh, KW: kw, StrideH: sh, StrideW: sw,
			PadT: pt, PadB: pb, PadL: pl, PadR: pr, DilH: dh, DilW: dw}, Groups: 1}
	}
	grouped2 := w(3, 2, 2, 1, 1, 0, 0, 1, 1, 2)
	grouped2.Groups = 2
	return []ConvCase{
		square("k3s1p1", 3, 16, 8, 8, 32, 3, 1, 1),
		square("k3s1p1 images of one", 1, 16, 1, 1, 8, 3, 1, 1),
		square("k3s1p1 odd", 3, 5, 7, 9, 11, 3, 1, 1),
		square("k3s1p1 big channels", 1, 70, 4, 5, 67, 3, 1, 1),
		square("k3s1p1 N=1", 1, 32, 13, 3, 48, 3, 1, 1),
		square("k3s1p1 C=1", 3, 1, 10, 9, 16, 3, 1, 1),
		square("k3s1p1 C=3", 2, 3, 16, 16, 24, 3, 1, 1),
		square("k3s1p1 O=3", 2, 24, 12, 12, 3, 3, 1, 1),
		square("k3s1p1 O=1", 3, 20, 6, 6, 1, 3, 1, 1),
		square("k3s1p0", 2, 4, 6, 6, 4, 3, 1, 0),
		square("k3s1p1 many images", 70, 16, 8, 8, 16, 3, 1, 1),
		square("k3s1p1 whole vectors, odd images", 3, 48, 7, 9, 80, 3, 1, 1),
		square("k3s1p0 whole vectors", 2, 32, 6, 11, 48, 3, 1, 0),
		square("k3s1p2 whole vectors", 2, 16, 5, 6, 16, 3, 1, 2),
		square("k3s1p2 one pixel, whole vectors", 2, 16, 1, 1, 48, 3, 1, 2),
		square("k3s1p2 one column, whole vectors", 1, 32, 4, 1, 32, 3, 1, 2),
		square("k3s1p0 one row of results, whole vectors", 1, 48, 3, 7, 32, 3, 1, 0),
		square("k3s1p1 deep", 1, 272, 4, 5, 32, 3, 1, 1),
		square("k4s2p1 many images", 70, 16, 8, 8, 16, 4, 2, 1),
		square("k4s2p1 whole vectors, odd images", 2, 32, 9, 15, 48, 4, 2, 1),
		square("k4s2p0 whole vectors", 2, 16, 10, 8, 16, 4, 2, 0),
		square("k4s2p3 whole vectors", 2, 16, 6, 9, 32, 4, 2, 3),
		square("k4s2p1 deep", 1, 80, 8, 8, 32, 4, 2, 1),
		NewConvCase("asymmetric padding, whole vectors", 2, 16, 6, 7, 16, w(3, 3, 1, 1, 0, 2, 1, 0, 1, 1)),
		NewConvCase("k3s1 and dilation 1,2, whole vectors", 2, 16, 5, 6, 16, w(3, 3, 1, 1, 1, 1, 2, 2, 1, 2)),
		NewConvCase("k3s1 and dilation 2,1, whole vectors", 2, 16, 6, 5, 16, w(3, 3, 1, 1, 2, 2, 1, 1, 2, 1)),
		NewConvCase("asymmetric padding s2, whole vectors", 2, 16, 7, 10, 16, w(4, 4, 2, 2, 0, 2, 1, 3, 1, 1)),
		square("k4s2p1", 3, 16, 8, 8, 32, 4, 2, 1),
		square("k4s2p1 C=3", 2, 3, 16, 16, 16, 4, 2, 1),
		square("k4s2p1 odd", 1, 9, 9, 11, 13, 4, 2, 1),
		square("k4s1p0 head", 3, 24, 4, 4, 20, 4, 1, 0),
		square("k4s1p0 head O=1", 3, 24, 4, 4, 1, 4, 1, 0),
		square("k4s1p0 head N=1", 1, 7, 4, 4, 100, 4, 1, 0),
		square("k4s3p0 head", 2, 7, 4, 4, 5, 4, 3, 0),
		NewConvCase("2x3 head", 5, 6, 2, 3, 9, w(2, 3, 1, 1, 0, 0, 0, 0, 1, 1)),
		NewConvCase("1x3 head", 5, 6, 1, 3, 9, w(1, 3, 1, 1, 0, 0, 0, 0, 1, 1)),
		NewConvCase("dilated head", 2, 6, 3, 3, 9, w(2, 2, 1, 1, 0, 0, 0, 0, 2, 2)),
		square("k8s1p0 head", 2, 3, 8, 8, 10, 8, 1, 0),
		square("k1", 2, 20, 5, 7, 12, 1, 1, 0),
		square("k1 of 1x1", 3, 33, 1, 1, 17, 1, 1, 0),
		square("k1 O=1", 3, 33, 1, 1, 1, 1, 1, 0),
		square("k1 C=1 O=1", 1, 1, 3, 3, 1, 1, 1, 0),
		square("k1s2", 2, 18, 7, 8, 12, 1, 2, 0),
		NewConvCase("k1 and stride 2,1", 2, 18, 7, 8, 12, w(1, 1, 2, 1, 0, 0, 0, 0, 1, 1)),
		NewConvCase("k1 and stride 1,2", 2, 18, 8, 7, 12, w(1, 1, 1, 2, 0, 0, 0, 0, 1, 1)),
		square("k1s2 of few channels", 1, 5, 10, 14, 16, 1, 2, 0),
		square("k1 of many pixels", 3, 16, 16, 17, 16, 1, 1, 0),
		square("k2 of many pixels", 3, 16, 16, 17, 16, 2, 1, 0),
		NewConvCase("k1 and stride 1,2, as many results as pixels", 5, 16, 5, 2, 16, w(1, 1, 1, 2, 0, 0, 1, 1, 1, 1)),
		NewConvCase("k1 and stride 2,1, as many results as pixels", 5, 16, 2, 5, 16, w(1, 1, 2, 1, 1, 1, 0, 0, 1, 1)),
		NewConvCase("k1 and padding on the left", 2, 16, 5, 6, 16, w(1, 1, 1, 1, 0, 0, 1, 0, 1, 1)),
		NewConvCase("k1 and padding below", 2, 16, 5, 6, 16, w(1, 1, 1, 1, 0, 1, 0, 0, 1, 1)),
		square("k1 of rows of 32", 2, 16, 10, 32, 16, 1, 1, 0),
		square("k3s1p1 of rows of 32", 2, 16, 9, 32, 16, 3, 1, 1),
		square("k1p1", 1, 6, 3, 3, 5, 1, 1, 1),
		square("k4 of many columns", 1, 70, 5, 5, 2, 4, 1, 1),
		square("k2s2", 2, 17, 7, 7, 10, 2, 2, 0),
		square("k3s2p1", 2, 16, 9, 8, 16, 3, 2, 1),
		square("k3s3p1 stride leaves pixels", 2, 4, 11, 9, 6, 3, 3, 1),
		square("k2s3 stride beyond kernel", 2, 4, 8, 9, 6, 2, 3, 0),
		square("k5s1p2", 1, 8, 9, 9, 8, 5, 1, 2),
		square("k7s2p3", 1, 3, 17, 15, 8, 7, 2, 3),
		square("k3p4 padding beyond kernel", 1, 4, 3, 4, 5, 3, 1, 4),
		NewConvCase("2x2 stride 2,4, windows of nothing but padding", 4, 17, 6, 11, 5, w(2, 2, 2, 4, 0, 3, 3, 0, 1, 1)),
		NewConvCase("dilation 2", 2, 8, 9, 9, 8, w(3, 3, 1, 1, 2, 2, 2, 2, 2, 2)),
		NewConvCase("dilation 3,2 stride 2,3", 2, 5, 13, 12, 7, w(3, 2, 2, 3, 2, 1, 0, 1, 3, 2)),
		NewConvCase("k4s4, padding that no window sees", 2, 16, 4, 4, 16, w(4, 4, 4, 4, 0, 1, 0, 1, 1, 1)),
		NewConvCase("k4s4, one row more, padding that no window sees", 1, 24, 5, 4, 40, w(4, 4, 2, 4, 1, 0, 0, 1, 1, 1)),
		NewConvCase("C=1 to one pixel", 2, 1, 4, 3, 16, w(4, 3, 1, 4, 1, 1, 1, 2, 1, 1)),
		square("k3s2p1 image of one", 3, 16, 1, 1, 16, 3, 2, 1),
		NewConvCase("asymmetric padding", 2, 8, 6, 7, 9, w(3, 3, 1, 1, 0, 2, 1, 0, 1, 1)),
		NewConvCase("1x5 and stride 1,2", 2, 8, 4, 11, 9, w(1, 5, 1, 2, 0, 0, 2, 2, 1, 1)),
		NewConvCase("5x1", 2, 8, 7, 3, 9, w(5, 1, 1, 1, 2, 2, 0, 0, 1, 1)),
		grouped("groups 2", 2, 8, 6, 6, 12, 3, 1, 1, 2),
		grouped("groups 4 k1", 2, 8, 3, 3, 12, 1, 1, 0, 4),
		grouped("groups 3 head", 2, 9, 4, 4, 6, 4, 1, 0, 3),
		grouped("groups 2 of 32", 1, 64, 5, 5, 64, 3, 1, 1, 2),
		grouped("depthwise", 2, 20, 7, 6, 20, 3, 1, 1, 20),
		grouped("depthwise s2", 3, 16, 8, 8, 16, 4, 2, 1, 16),
		grouped("depthwise times 2", 2, 6, 7, 7, 12, 3, 1, 1, 6),
		NewConvCase("groups 2, all odd", 3, 6, 8, 7, 10, grouped2),
	}
}

// Counted are the geometries in which engines count what a run allocates: all, and those
// of little work under the race detector.
func Counted() []ConvCase {
	all := Convs()
	if !race {
		return all
	}
	return slices.DeleteFunc(all, func(c ConvCase) bool { return c.Flops() > shortFlops })
}

// MatMuls are the matrix products of the suite: all four transposes of every
// size.
func MatMuls() (ps []engine.MatMulProblem) {
	for _, s := range [][3]int{ // M, N, K
		{1, 1, 1}, {1, 1, 100}, {1, 37, 5}, {41, 1, 6}, {17, 13, 1}, {1, 64, 300}, {65, 1, 129},
		{3, 5, 7}, {12, 32, 16}, {13, 33, 17}, {64, 64, 64}, {100, 31, 77}, {19, 66, 515}, {130, 70, 20}, {5, 1100, 3},
		{50, 200, 80}, {90, 47, 81}, // shared among threads
	} {
		for t := range 4 {
			ps = append(ps, engine.MatMulProblem{M: s[0], N: s[1], K: s[2], TransA: t&1 != 0, TransB: t&2 != 0})
		}
	}
	return ps
}
