// Package cudnn prepares convolutions with cuDNN, by its backend (graph) API. The
// library is loaded at run time; it is cuDNN 9.
//
//	tensors x, w, y ─┐
//	convolution ─────┴─ operation ─ graph ─┬─ heuristics ─ engine configurations
//	                                       └─ engine + knobs ─ configuration
//	                                                     configuration ─ plan
//
// Tensors are four-dimensional in cuDNN's order, N, C, H, W, and lie channels-last by
// their strides, the weights too; groups follow from the channels of x and w.
//
// Which engines are taken: never one whose results may differ from run to run, whose
// operands are rounded to other types than they have, or that adds up in less than
// float32. Where float32 must be multiplied as such, none with tensor cores: for
// float32 they round to TF32. Engines that are compiled at run time take seconds
// each and are asked where there is no other. Heuristics come in cuDNN's order, mode A
// first, then those of last resort.
//
// A choice is kept as an engine's number and its knobs, which rebuild the plan on the
// same version and device. cuDNN's own JSON of a plan serves engines that are compiled
// at run time alone.
//
// cuDNN keeps handles by stream, as a handle's internal memory is not to be used by
// two streams at a time. None can be made in a capture, and what a handle first needs it
// may allocate; so a run on each stream comes before a capture of it.
package cudnn
