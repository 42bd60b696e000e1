package philox

// UniformFrom32 is UniformFrom, each element rounded to float32: one in 2²⁴ is 1.
func (n Name) UniformFrom32(dst []float32, block uint32) {
	if wide {
		n.wideUniform32(dst, block)
		return
	}
	n.from32(dst, block, Name.UniformFrom)
}

// NormalFrom32 is NormalFrom, each element rounded to float32.
func (n Name) NormalFrom32(dst []float32, block uint32) {
	if wide {
		n.wideNormal32(dst, block)
		return
	}
	n.from32(dst, block, Name.NormalFrom)
}

// from32 rounds what fill makes, some blocks at a time.
func (n Name) from32(dst []float32, block uint32, fill func(n Name, dst []float64, block uint32)) {
	var buf [64]float64
	for ; len(dst) > 0; block += uint32(len(buf) / 4) {
		some := buf[:min(len(buf), len(dst))]
		fill(n, some, block)
		for i, v := range some {
			dst[i] = float32(v)
		}
		dst = dst[len(some):]
	}
}
