// Package cublaslt prepares matrix products with cuBLASLt, which is loaded at run
// time, of CUDA 12 or 13.
//
// cuBLASLt's matrices are column-major, ours row-major, which is the same as
// transposed: z = A·B is computed as zᵀ = Bᵀ·Aᵀ, in place, with the operands in the
// other order. Float32 is multiplied as such or, where a problem allows it, as TF32;
// bfloat16 operands are added up in float32, and the result is float32 or bfloat16.
//
// A sum that is split among blocks is put together in float32 in the workspace, in a
// step of its own. The two other ways are left out: in place, where blocks add to the
// result as they come, and by parts in the result's type. So a product has the same
// bits in every run.
//
// A choice is kept as the algorithm's 64 bytes, which serve on the same version and
// device.
package cublaslt
