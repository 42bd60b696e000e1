// Package moves copies, converts and resamples: transpose, slice, pad, concat,
// gather and scatter, casts, index ramps, constants, random draws, pools and
// upsampling. What it computes in between, other than sums in pools and
// scatters, is copying.
//
// Images lie channels last, so a pixel is one run of memory, and what is done to
// an image is done to runs:
//
//	(N, H, W, C)   n ┌ row 0 ┬ row 1 ┬ …       row: ┌ pixel ┬ pixel ┬ …
//	                 └ W · C ┴ W · C ┴ …            └   C   ┴   C   ┴ …
//
// Adjoints of pools and upsampling are written as gathers, and scatters share
// columns or images among threads, so no two threads add to one element and every
// element adds up in one order.
//
// Kernels in assembly: the weighted sum of pixels (mix), float32 only.
//
//	mix16   AVX-512      16 or 64 channels at a time, sums in registers
//	mix8    AVX2, FMA    8 or 32 channels at a time, sums in registers
//	        plain Go     all else
//
// Concurrency: a kernel runs once at a time and shares its work among the threads
// of the Jobs that it was made with.
package moves
