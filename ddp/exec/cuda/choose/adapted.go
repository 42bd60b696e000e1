package choose

import (
	"fmt"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// adapted is a candidate of a library for a problem as the library takes it, as one
// for the problem as it was asked: operands are moved into the workspace before it runs,
// cast or as columns, and the result from there after.
type adapted struct {
	linalg.Candidate
	by   string
	q    linalg.Problem // as the library takes it
	swap bool           // its operands are ours in the other order

	moves [3]moved // of result and operands, in our order
	casts bool     // there are casts among them
	start int64    // where the library's workspace begins
}

// moved is how one of a problem's arrays becomes the library's, or the other way around;
// nothing where that is the same.
type moved struct {
	do func(s *cuda.Stream, dst, src cuda.Ptr) error
	at int64 // where in the workspace the library's is
}

// columns says which arrays, of result and operands, are images that become columns, or
// are made of them.
type columns [3]*linalg.Columns

// adapt returns how a library would do problem p as q, without a candidate yet. What does
// not become columns has as many elements in both. The library's operands are alike (see
// variants), so it is no matter which is which.
func (c *Chooser) adapt(p, q linalg.Problem, swap bool, by string, cols columns) adapted {
	a := adapted{by: by, q: q, swap: swap}
	ours, theirs := types(p.Types()), types(q.Types())
	var lens [3]int64
	lens[0], lens[1], lens[2] = p.Lens()
	for i := range a.moves {
		n := lens[i]
		switch col := cols[i]; {
		case col != nil:
			dst, src := col.Lens()
			if n = dst; col.Back {
				n = src
			}
			a.moves[i].do = func(s *cuda.Stream, dst, src cuda.Ptr) error { return c.o.Move(s, *col, dst, src) }
		case ours[i] != theirs[i]:
			to, from := theirs[i], ours[i]
			if i == 0 {
				to, from = from, to
			}
			a.casts = true
			a.moves[i].do = func(s *cuda.Stream, dst, src cuda.Ptr) error { return c.o.Cast(s, dst, to, src, from, n) }
		default:
			continue
		}
		a.moves[i].at = a.start
		a.start += (n*int64(theirs[i].Size()) + linalg.Align - 1) &^ (linalg.Align - 1)
	}
	return a
}

func types(t linalg.Types) [3]graph.DType { return [...]graph.DType{t.Dst, t.A, t.B} }

func (a *adapted) String() string {
	s := a.by + " " + a.Candidate.String()
	if a.casts {
		s += fmt.Sprintf(", cast from %v", a.q.Types())
	}
	return s
}

func (a *adapted) Workspace() int64 { return a.start + a.Candidate.Workspace() }

func (a *adapted) Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	at := [...]cuda.Ptr{o.Dst, o.A, o.B}
	for i, m := range a.moves {
		if m.do == nil {
			continue
		}
		place := work + cuda.Ptr(m.at)
		if i > 0 {
			if err := m.do(s, place, at[i]); err != nil {
				return err
			}
		}
		at[i] = place
	}
	if a.swap {
		at[1], at[2] = at[2], at[1]
	}
	if err := a.Candidate.Enqueue(s, linalg.Operands{Dst: at[0], A: at[1], B: at[2]}, work+cuda.Ptr(a.start)); err != nil {
		return err
	}
	if a.moves[0].do == nil {
		return nil
	}
	return a.moves[0].do(s, o.Dst, at[0])
}

// variants are the types in which a library may be asked for a problem, in groups: the
// next is asked only where the one before has no candidate, or few. Both operands are of
// one type, as libraries want them; a plain kernel takes any.
//
// Widening loses nothing, and bfloat16 numbers multiply exactly as TF32, too. Results
// are narrowed at the very end.
func variants(p linalg.Problem) [][]linalg.Types {
	t := p.Types()
	if t.A == graph.F64 {
		return [][]linalg.Types{{t}}
	}
	narrow := t
	narrow.A, narrow.B = graph.BF16, graph.BF16
	wide := t
	wide.Dst, wide.A, wide.B = graph.F32, graph.F32, graph.F32
	switch {
	case t.A == graph.BF16 && t.B == graph.BF16:
		wide.Math = linalg.TF32
		if mayRound(p) {
			rounded := t
			rounded.Dst = graph.BF16
			return [][]linalg.Types{{narrow}, {rounded}, {wide}}
		}
		return [][]linalg.Types{{narrow}, {wide}}
	case t.Math != linalg.BF16:
		return [][]linalg.Types{{wide}}
	case t.A == graph.F32 && t.B == graph.F32:
		return [][]linalg.Types{{wide, narrow}}
	}
	return [][]linalg.Types{{narrow}, {wide}}
}

// mayRound says whether a result in float32 may be rounded to bfloat16, once it has been
// added up in float32: gradients of the weights of images in bfloat16, for which cuDNN
// has one engine that leaves float32, and none that adds up parts of a long sum side by
// side. On a GPU that took up to six times as long as what rounds.
func mayRound(p linalg.Problem) bool {
	q, ok := p.(linalg.Conv)
	if !ok || q.Op != linalg.GradW || q.T.Math != linalg.BF16 || q.T.Dst != graph.F32 {
		return false
	}
	_, _, product := q.Product()
	return !product
}
