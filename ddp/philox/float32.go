package philox

// UniformFrom32 is UniformFrom, each element rounded to float32: one in 2²⁴ is 1.
func (n Name) UniformFrom32(dst []float32, block uint32) {
	if wide != plain {
		n.wideUniform32(dst, block)
		return
	}
	var buf [64]float64
	for ; len(dst) > 0; block += uint32(len(buf) / 4) {
		some := buf[:min(len(buf), len(dst))]
		n.UniformFrom(some, block)
		dst = narrow(dst, some)
	}
}

// NormalFrom32 is NormalFrom, each element rounded to float32.
func (n Name) NormalFrom32(dst []float32, block uint32) {
	if wide != plain {
		n.wideNormal32(dst, block)
		return
	}
	var buf [64]float64
	for ; len(dst) > 0; block += uint32(len(buf) / 4) {
		some := buf[:min(len(buf), len(dst))]
		n.NormalFrom(some, block)
		dst = narrow(dst, some)
	}
}

// narrow rounds x into the first elements of dst, and returns the others.
func narrow(dst []float32, x []float64) []float32 {
	for i, v := range x {
		dst[i] = float32(v)
	}
	return dst[len(x):]
}
