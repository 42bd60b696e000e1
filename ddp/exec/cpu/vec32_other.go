//go:build !amd64 || noasm

package cpu

import "ebtrain/ddp/graph"

// The loops for float32, where there is no assembly.

func pairs32(fn graph.BinaryFn) pair[float32]  { return pairs[float32](fn) }
func unaries32(fn graph.UnaryFn) vec1[float32] { return unaries[float32](fn) }
func select32() vec3[float32]                  { return selectVVV[float32] }
func sums32() adders[float32, float64]         { return plainAdders[float32, float64]() }
