// Package kernel writes the CUDA C of a plan's steps: for each step the text of its
// kernels, how many blocks run them, and the bytes of their argument.
//
//	plan.Step ── For ──▶ []Launch{Entry, Source, Grid, Args}
//	                                 │
//	            NVRTC (or gcc and the shim, in tests) compiles Source once for
//	            each Entry; the device launches Entry on Grid blocks of Block
//	            threads, with Args(memory) as the one argument
//
// A step is one launch or a few, in order on one stream; nothing else about their
// order is assumed.
//
// # One text for many steps
//
// Extents, strides and constants are arguments. What is left in the text is the shape
// of a step: the ops and how they hang together, element types, along which axes an
// operand is repeated, how many elements a thread moves at once. Equal shapes give
// equal texts, whose name is a hash of them: a program of 300 fused steps has some 75
// kernels, each compiled once.
//
// # The dialect
//
// The text is C without templates that both NVRTC and gcc take; dialect.h is its head
// for NVRTC, collective/cuda/cudatest/double/shim.h explains it and is the same for
// gcc. So kernels really run in tests, on the CPU, and are held to package ref. Blocks
// are one-dimensional; SYNC stands in uniform flow only; there are no atomics and
// nothing depends on the order of blocks: the same arguments give the same bits.
//
// # Numbers
//
// As on the CPU: a group computes in the type of its elements, bfloat16 in float32
// rounded after each instruction, integers in int64 wrapped after each. Sums are added
// up in float64 (int64) and rounded once. Loads and stores convert. Compiled with
// Options, products and sums are not contracted.
package kernel
