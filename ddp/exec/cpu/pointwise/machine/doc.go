// Package machine runs the float32 code of a fused group on a strip of 128 points
// at a time: a vector machine in threaded code. Its accumulator is the strip's 128
// numbers, which stay in vector registers from one instruction to the next; an
// instruction combines the accumulator with an operand in memory. What is needed
// again later is stored, everything else never leaves the registers.
//
// A program is an array of instructions. Each holds the address of its handler,
// which does its work and jumps to that of the next; the last one starts the
// program again, on the next strip:
//
//	┌ handler ┬ operand ┬ counter ┬ number, ahead ┐
//	│ load    │ x       │ InArray │               │   acc = x[at : at+128]
//	│ mulNum  │ scale   │ Still   │               │   acc = acc · scale
//	│ add     │ shift   │ InBlock │               │   acc = acc + shift[…]
//	│ store   │ y       │ InArray │               │   y[at : at+128] = acc
//	│ next    │         │         │               │   at = at + 128
//	└─────────┴─────────┴─────────┴───────────────┘
//
// The interpreter of package pointwise is the reference: both do the same
// operations on each number, so the bits are equal; only sums are added up in
// another order. The machine is there in AVX-512 and in AVX2, which has half a strip
// in registers and does one half after the other.
//
// Concurrency: a Program is used by one goroutine at a time.
package machine
