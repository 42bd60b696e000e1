// Package vec is loops over blocks of numbers: one instruction of a fused group,
// applied to some hundred to some thousand numbers in the first-level cache, or
// their sum.
//
// All blocks of a call have the length of the first, d; d may be the same memory
// as an operand. Suffixes say what the operands are, V a block, S one number:
//
//	addVV  d[i] = x[i] + y[i]      sum         Σ x[i]
//	addVS  d[i] = x[i] + s         sumColumns  acc[c] += Σ x[r·len(acc) + c]
//
// Every loop exists in plain Go for float32, float64 and int64. Float32 has loops
// in assembly as well, whose names end in how many numbers (of sums of columns:
// columns) they do at a time; the rest of a block goes to the loop in Go:
//
//	arithmetic, comparison, select, rectifiers   8                  AVX2
//	exp, log, elu, sigmoid, tanh, softplus       8                  AVX2, FMA
//	sum, in float64                              16, 64             AVX2, AVX-512
//	sums of columns, in float64                  4, 16 · 32, 64     AVX2 · AVX-512
//	sums of the squares of columns, in float64   32, 64             AVX-512
//
// Concurrency: functions of their arguments.
package vec
