package choose

import (
	"fmt"

	"ebtrain/collective/cuda"
	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// adapted is a candidate of a library for a problem as the library takes it, as one
// for the problem as it was asked: operands are cast into the workspace before it runs,
// and the result from there after.
type adapted struct {
	linalg.Candidate
	by   string
	q    linalg.Problem // as the library takes it
	swap bool           // its operands are ours in the other order
	cast Cast

	from, to linalg.Types // ours and the library's, whose operands are alike (see variants)
	lens     [3]int64     // of result and operands, in our order
	at       [3]int64     // where in the workspace those are that are cast; −1: none
	start    int64        // where the library's workspace begins
}

// adapt returns how a library would do problem p as q, without a candidate yet.
func adapt(p, q linalg.Problem, swap bool, by string, cast Cast) adapted {
	a := adapted{by: by, q: q, swap: swap, cast: cast, from: p.Types(), to: q.Types()}
	a.lens[0], a.lens[1], a.lens[2] = p.Lens()
	ours, theirs := types(a.from), types(a.to)
	for i := range a.at {
		a.at[i] = -1
		if ours[i] != theirs[i] {
			a.at[i] = a.start
			a.start += (a.lens[i]*int64(theirs[i].Size()) + linalg.Align - 1) &^ (linalg.Align - 1)
		}
	}
	return a
}

func types(t linalg.Types) [3]graph.DType { return [...]graph.DType{t.Dst, t.A, t.B} }

func (a *adapted) String() string {
	s := a.by + " " + a.Candidate.String()
	if a.start > 0 {
		s += fmt.Sprintf(", cast from %v", a.to)
	}
	return s
}

func (a *adapted) Workspace() int64 { return a.start + a.Candidate.Workspace() }

func (a *adapted) Enqueue(s *cuda.Stream, o linalg.Operands, work cuda.Ptr) error {
	ours, theirs := types(a.from), types(a.to)
	at := [...]cuda.Ptr{o.Dst, o.A, o.B}
	for i := range at {
		if a.at[i] < 0 {
			continue
		}
		place := work + cuda.Ptr(a.at[i])
		if i > 0 {
			if err := a.cast(s, place, theirs[i], at[i], ours[i], a.lens[i]); err != nil {
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
	if a.at[0] < 0 {
		return nil
	}
	return a.cast(s, o.Dst, ours[0], at[0], theirs[0], a.lens[0])
}

// variants are the types in which a library may be asked for a problem of types t, in
// groups: the next is asked only where the one before has no candidate. Both operands
// are of one type, as libraries want them; a plain kernel takes any.
//
// Widening loses nothing, and bfloat16 numbers multiply exactly as TF32, too. Results
// are narrowed at the very end.
func variants(t linalg.Types) [][]linalg.Types {
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
		return [][]linalg.Types{{narrow}, {wide}}
	case t.Math != linalg.BF16:
		return [][]linalg.Types{{wide}}
	case t.A == graph.F32 && t.B == graph.F32:
		return [][]linalg.Types{{wide, narrow}}
	}
	return [][]linalg.Types{{narrow}, {wide}}
}
