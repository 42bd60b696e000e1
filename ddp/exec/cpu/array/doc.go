// Package array says where the operands of a kernel lie and how they are read:
// places in memory, walks over arrays that are repeated along some axes, and
// conversions between element types. It computes nothing, and has no assembly.
//
// An array is dense and row-major, images with channels last. An operand may be
// smaller than the space that a kernel walks: a plan.Access says which element
// each point reads, here that of a vector per channel.
//
//	points of a (2, 3) space    0 1 2 3 4 5     Dims    2 3
//	elements of a (1, 3) array  0 1 2 0 1 2     Strides 0 1, Period 3
//	elements of a (2, 1) array  0 0 0 1 1 1     Strides 1 0, in runs of one number
//
// Concurrency: functions of their arguments.
package array
