package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	driver "ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/cudnn"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// geometries are convolutions as the networks have them.
var geometries = []struct{ n, c, h, o, k, stride, pad int }{
	{64, 3, 32, 64, 3, 1, 1}, {64, 64, 32, 64, 3, 1, 1}, {64, 128, 16, 256, 4, 2, 1}, {64, 256, 8, 512, 3, 1, 1}, {36, 64, 128, 128, 1, 1, 0},
}

// engines are checks of part a: what cuDNN offers for convolutions in each precision, what
// of it serves, and why the rest does not. A precision without any engine fails.
func engines(ctx context.Context, r *report) (err error) {
	for _, t := range []linalg.Types{
		{Dst: graph.BF16, A: graph.BF16, B: graph.BF16, Math: linalg.BF16}, {Dst: graph.F32, A: graph.BF16, B: graph.BF16, Math: linalg.BF16},
		{Dst: graph.F32, A: graph.F32, B: graph.F32, Math: linalg.TF32}, {Dst: graph.F32, A: graph.F32, B: graph.F32, Math: linalg.Full},
	} {
		err = errors.Join(err, r.do(ctx, "a", fmt.Sprintf("engines of cuDNN for %v", t), func() (string, map[string]any, error) {
			return survey(r.Devices[0].Ordinal, t)
		}))
	}
	return err
}

func survey(ordinal int, t linalg.Types) (text string, numbers map[string]any, err error) {
	d, err := driver.OpenDevice(ordinal)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	if err := multiplies(d, t); err != nil {
		return "", nil, err
	}
	l, err := cudnn.New(d, 256<<20)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var lines []string
	problems, served := 0, 0
	for n, g := range geometries {
		for op := linalg.Forward; op <= linalg.GradW; op++ {
			out := (g.h+2*g.pad-g.k)/g.stride + 1
			p := linalg.Conv{Op: op, N: g.n, C: g.c, H: g.h, W: g.h, O: g.o, OH: out, OW: out, T: t, Conv: graph.Conv{Groups: 1, Window: graph.Window{
				KH: g.k, KW: g.k, StrideH: g.stride, StrideW: g.stride, PadT: g.pad, PadB: g.pad, PadL: g.pad, PadR: g.pad, DilH: 1, DilW: 1}}}
			s, err := l.Survey(p, n == 0) // of one geometry: each takes a second or several
			if err != nil {
				return strings.Join(lines, "\n"), nil, fmt.Errorf("%v: %w", p, err)
			}
			problems++
			if s.Plans > 0 {
				served++
			}
			found := append([]string{fmt.Sprintf("%v %d, %d² of %d, %d² of %d: %v", op, g.n, g.h, g.c, g.k, g.o, s)}, s.Failures...)
			if _, err := fmt.Println(strings.Join(found, "\n")); err != nil { // should this end before its time
				return "", nil, err
			}
			lines = append(lines, found...)
		}
	}
	numbers = map[string]any{"problems": problems, "served": served}
	if served == 0 && t.A == t.Dst {
		return strings.Join(lines, "\n"), numbers, errors.New("cuDNN serves none of them")
	}
	return strings.Join(lines, "\n"), numbers, nil
}
