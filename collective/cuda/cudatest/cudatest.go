// Package cudatest gives tests a machine with GPUs: doubles of NVIDIA's
// libraries in C, built by the C compiler under their real names and found
// through the loader's own override. Their kernels really run, compiled by gcc.
//
// A process loads its libraries once, so all tests of a package share one
// machine. What it is like is said by knobs, before it is used by the
// environment or later by [Machine.Set]; processes that a test starts inherit
// the environment and have machines of their own.
package cudatest
