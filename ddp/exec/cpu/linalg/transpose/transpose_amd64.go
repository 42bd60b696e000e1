//go:build !noasm

package transpose

// AVX512 is for processors with AVX512F.
func AVX512() Kernels { return Kernels{toColumnsAVX512, toRowsAVX512, toStridedAVX512} }

// AVX2 is for processors with AVX2, and rows of at least four elements.
func AVX2() Kernels { return Kernels{Columns: toColumnsAVX2, Rows: toRowsAVX2} }

//go:noescape
func toColumnsAVX512(dst, src *float32, step, taps int)

//go:noescape
func toRowsAVX512(dst *float32, step int, src *float32, taps int)

//go:noescape
func toStridedAVX512(dst *float32, down int, src *float32, step int)

//go:noescape
func toColumnsAVX2(dst, src *float32, step, taps int)

//go:noescape
func toRowsAVX2(dst *float32, step int, src *float32, taps int)
