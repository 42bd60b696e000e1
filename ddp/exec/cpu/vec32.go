package cpu

import "ebtrain/ddp/graph"

// unaries32 is the loop of a function of one float32.
func unaries32(fn graph.UnaryFn) vec1[float32] { return unaries[float32](fn) }
