//go:build cgo

package cudnn

// #include "shim.h"
import "C"

import (
	"cmp"
	"unsafe"
)

// desc is a backend descriptor.
type desc uintptr

// kinds are the descriptors' names for people.
var kinds = map[C.int]string{
	C.EB_CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:                           "convolution",
	C.EB_CUDNN_BACKEND_ENGINE_DESCRIPTOR:                                "engine",
	C.EB_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR:                             "engine configuration",
	C.EB_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:                            "heuristics",
	C.EB_CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:                        "execution plan",
	C.EB_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR:                           "knob",
	C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:         "forward convolution",
	C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: "gradient of weights",
	C.EB_CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:   "gradient of an image",
	C.EB_CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:                        "operation graph",
	C.EB_CUDNN_BACKEND_TENSOR_DESCRIPTOR:                                "tensor",
}

// builder makes descriptors, sets and reads their attributes, and destroys all of
// them in the end. Its first error stays, and ends all that follows.
type builder struct {
	l     *Library
	descs []desc
	kind  map[desc]C.int
	err   error
}

func newBuilder(l *Library) *builder { return &builder{l: l, kind: map[desc]C.int{}} }

// create makes a descriptor.
func (b *builder) create(kind C.int) desc {
	if b.err != nil {
		return 0
	}
	var d C.uintptr_t
	var why C.eb_why
	if b.err = b.l.check(C.eb_cudnn_desc(b.l.api, kind, &d, &why), &why, kinds[kind]); b.err != nil {
		return 0
	}
	b.descs = append(b.descs, desc(d))
	b.kind[desc(d)] = kind
	return desc(d)
}

// setRaw sets n elements of an attribute.
func (b *builder) setRaw(d desc, attr, typ C.int, n int, elements unsafe.Pointer) {
	if b.err != nil {
		return
	}
	var why C.eb_why
	b.err = b.l.check(C.eb_cudnn_set(b.l.api, C.uintptr_t(d), attr, typ, C.int64_t(n), elements, &why), &why, kinds[b.kind[d]])
}

// set sets the elements of an attribute.
func set[E int32 | int64 | float32 | float64 | desc | handle](b *builder, d desc, attr, typ C.int, elements ...E) {
	b.setRaw(d, attr, typ, len(elements), unsafe.Pointer(unsafe.SliceData(elements)))
}

// get reads at most len(elements) of an attribute, and says how many there are.
func get[E int32 | int64 | desc](b *builder, d desc, attr, typ C.int, elements []E) int {
	if b.err != nil {
		return 0
	}
	var n C.int64_t
	var why C.eb_why
	status := C.eb_cudnn_get(b.l.api, C.uintptr_t(d), attr, typ, C.int64_t(len(elements)), &n, unsafe.Pointer(unsafe.SliceData(elements)), &why)
	b.err = b.l.check(status, &why, kinds[b.kind[d]])
	return int(n)
}

func (b *builder) finalize(d desc) {
	if b.err != nil {
		return
	}
	var why C.eb_why
	b.err = b.l.check(C.eb_cudnn_finalize(b.l.api, C.uintptr_t(d), &why), &why, kinds[b.kind[d]])
}

// close destroys what was made, the last first. It does so after an error, too.
func (b *builder) close() error {
	var errs []error
	for i := len(b.descs) - 1; i >= 0; i-- {
		var why C.eb_why
		d := b.descs[i]
		errs = append(errs, b.l.check(C.eb_cudnn_undesc(b.l.api, C.uintptr_t(d), &why), &why, kinds[b.kind[d]]))
	}
	b.descs = nil
	return cmp.Or(errs...)
}
