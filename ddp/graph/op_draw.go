package graph

import (
	"fmt"

	"ebtrain/ddp/philox"
)

// Dist is a distribution of random draws.
type Dist uint8

const (
	Normal     Dist = iota + 1 // N(0, 1)
	Uniform                    // uniform on (0, 1)
	Rademacher                 // 1 where the lowest bit of the word is set, −1 elsewhere
)

func (d Dist) String() string {
	return [...]string{"?", "normal", "uniform", "rademacher"}[min(d, 3)]
}

// KeyType is the type of the key of draws: {seed, step, first}.
var KeyType = T(I64, 3)

// Draw is a tensor of independent draws, a function of its name alone:
// row i (axis 0) holds elements 0, 1, … of the philox stream
//
//	Name{Seed: key[0], Step: key[1], Sample: key[2] + i, Purpose, Sub}
//
// The key's third entry is the position in the global batch of the rank's
// first sample, so ranks draw what one rank would have drawn. The input is the
// key, of KeyType.
type Draw struct {
	Dist    Dist
	Purpose philox.Purpose
	Sub     uint16
	Type    Type
}

func (o Draw) String() string {
	return fmt.Sprintf("draw{%s purpose %d.%d}", o.Dist, o.Purpose, o.Sub)
}

func (o Draw) Infer(in []Type) ([]Type, error) {
	if err := wantInputs(in, 1); err != nil {
		return nil, err
	}
	if in[0] != KeyType || !o.Type.DType.IsFloat() || o.Type.Shape.Rank() < 1 || o.Dist < Normal || o.Dist > Rademacher {
		return nil, fmt.Errorf("want a key of type %v and a floating-point result with at least one axis", KeyType)
	}
	return []Type{o.Type}, nil
}

func (o Draw) VJP(*Builder, Call, []ID) []ID { return []ID{0} }

// Draw is a tensor of independent draws named by key, purpose and sub.
func (b *Builder) Draw(key ID, dist Dist, p philox.Purpose, sub uint16, t Type) ID {
	return b.apply1(Draw{dist, p, sub, t}, key)
}
