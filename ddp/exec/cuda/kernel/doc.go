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
// order is assumed. Small fused steps can share a launch, and so can steps of one kernel:
// see Batch and Alike.
//
// # How a kernel is made
//
// The group y = tanh(½·(x + c)), where c is a number for each channel, becomes
//
//	struct fused_…_args {              params: what differs between steps
//	    const float *in0, *in1;
//	    quot d0_1;                     the number of channels, to divide by
//	    float *out0, a1;
//	    i64 n;
//	};
//	KERNEL(fused_…, 256, struct fused_…_args) {
//	    const idx p = ((idx)BID * 256 + TID) * 4;   a thread's four points
//	    if (p >= (idx)a.n)
//	        return;
//	    …                              load4: x at p, c at p mod channels
//	    for (int j = 0; j < 4; j++) {
//	        const float r0 = x0[j], r1 = x1[j];     registers, as in plan.Fused
//	        const float r2 = r0 + r1;
//	        const float r3 = a.a1 * r2;
//	        const float r4 = tanhf(r3);
//	        y0[j] = r4;
//	    }
//	    …                              store4
//	}
//
// A maker (pointwise, reduction, image, product, …) embeds a source, to which it adds
// fields of the argument, helper functions, and lines; source.launch closes it. Whole
// texts are in testdata/*.golden.
//
// # One text for many steps
//
// Extents, strides and constants are arguments. What is left in the text is the shape
// of a step: the ops and how they hang together, element types, along which axes an
// operand is repeated, how many elements a thread moves at once. Equal shapes give
// equal texts, whose name is a hash of them: the 703 steps of conv32 have 105 kernels, of
// which 64 are left where small steps and steps of one kernel share launches.
//
// # The dialect
//
// The text is C without templates that both NVRTC and gcc take; dialect.h is its head
// for NVRTC, collective/cuda/cudatest/double/shim.h explains it and is the same for
// gcc. So kernels really run in tests, on the CPU, and are held to package ref. Blocks
// are one-dimensional; SYNC and MMA, a warp's product of matrices in tensor cores, stand in
// uniform flow only; the one atomic is LAST, which
// tells a block that it is the last of some, and nothing depends on which that is, nor on
// the order of blocks: the same arguments give the same bits.
//
// # Numbers
//
// As on the CPU: a group computes in the type of its elements, bfloat16 in float32
// rounded after each instruction, integers in int64 wrapped after each. Sums are added
// up in float64 (int64) and rounded once. Loads and stores convert. Compiled with
// Options, products and sums are not contracted. Draws have the bits of package philox.
//
// Concurrency: all functions may be called by any goroutine, on a plan that nobody
// changes.
package kernel
