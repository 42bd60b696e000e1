//go:build !noasm

package philox

// eight is what eight blocks make: number j of block i at [j][i].
type eight[T any] [4][8]T

// blocks8 is blocks i … i+7; tag is Purpose<<16|Sub.
func blocks8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64) {
	if wide == avx512 {
		blocks8AVX512(dst, i, sample, step, tag, seed)
	} else {
		blocks8AVX2(dst, i, sample, step, tag, seed)
	}
}

// samples8 is block i of samples sample … sample+7.
func samples8(dst *eight[uint64], i, sample, step, tag uint32, seed uint64) {
	if wide == avx512 {
		samples8AVX512(dst, i, sample, step, tag, seed)
	} else {
		samples8AVX2(dst, i, sample, step, tag, seed)
	}
}

// boxMuller8 is BoxMuller of eight pairs of words.
func boxMuller8(z0, z1 *[8]float64, w0, w1 *[8]uint64) {
	if wide == avx512 {
		boxMuller8AVX512(z0, z1, w0, w1)
	} else {
		boxMuller8AVX2(z0, z1, w0, w1)
	}
}

// uniforms are groups of eight blocks from block i on, as Uniform makes them, rounded to
// float32.
func uniforms(dst *float32, groups int, i, sample, step, tag uint32, seed uint64) {
	if wide == avx512 {
		uniformsAVX512(dst, groups, i, sample, step, tag, seed)
	} else {
		uniformsAVX2(dst, groups, i, sample, step, tag, seed)
	}
}

// normals are the same for Normal.
func normals(dst *float32, groups int, i, sample, step, tag uint32, seed uint64) {
	if wide == avx512 {
		normalsAVX512(dst, groups, i, sample, step, tag, seed)
	} else {
		normalsAVX2(dst, groups, i, sample, step, tag, seed)
	}
}

func (n Name) wideUniform32(dst []float32, block uint32) {
	tag := uint32(n.Purpose)<<16 | uint32(n.Sub)
	groups := len(dst) / 32
	if groups > 0 {
		uniforms(&dst[0], groups, block, n.Sample, n.Step, tag, n.Seed)
	}
	if rest := dst[groups*32:]; len(rest) > 0 { // from a whole group
		var last [32]float32
		uniforms(&last[0], 1, block+8*uint32(groups), n.Sample, n.Step, tag, n.Seed)
		copy(rest, last[:])
	}
}

func (n Name) wideNormal32(dst []float32, block uint32) {
	tag := uint32(n.Purpose)<<16 | uint32(n.Sub)
	groups := len(dst) / 32
	if groups > 0 {
		normals(&dst[0], groups, block, n.Sample, n.Step, tag, n.Seed)
	}
	if rest := dst[groups*32:]; len(rest) > 0 {
		var last [32]float32
		normals(&last[0], 1, block+8*uint32(groups), n.Sample, n.Step, tag, n.Seed)
		copy(rest, last[:])
	}
}

// wideNormal does the first elements of NormalFrom, and returns what is left.
func (n Name) wideNormal(dst []float64, block uint32) ([]float64, uint32) {
	var w eight[uint64]
	var z eight[float64]
	for ; len(dst) >= 32; dst, block = dst[32:], block+8 {
		blocks8(&w, block, n.Sample, n.Step, uint32(n.Purpose)<<16|uint32(n.Sub), n.Seed)
		boxMuller8(&z[0], &z[1], &w[0], &w[1])
		boxMuller8(&z[2], &z[3], &w[2], &w[3])
		d := (*[32]float64)(dst)
		for i := range 8 {
			d[4*i], d[4*i+1], d[4*i+2], d[4*i+3] = z[0][i], z[1][i], z[2][i], z[3][i]
		}
	}
	return dst, block
}

// wideUniform is wideNormal for UniformFrom.
func (n Name) wideUniform(dst []float64, block uint32) ([]float64, uint32) {
	var w eight[uint64]
	for ; len(dst) >= 32; dst, block = dst[32:], block+8 {
		blocks8(&w, block, n.Sample, n.Step, uint32(n.Purpose)<<16|uint32(n.Sub), n.Seed)
		for i := range 8 {
			for j := range 4 {
				dst[4*i+j] = Float64(uint32(w[j][i]))
			}
		}
	}
	return dst, block
}

// wideNormalRows does the first rows of NormalRows, eight at a time, and returns
// what is left.
func (n Name) wideNormalRows(dst []float64, cols int) ([]float64, Name) {
	var w eight[uint64]
	var z eight[float64]
	for ; len(dst) >= 8*cols; dst, n.Sample = dst[8*cols:], n.Sample+8 {
		for c := 0; c < cols; c += 4 {
			samples8(&w, uint32(c/4), n.Sample, n.Step, uint32(n.Purpose)<<16|uint32(n.Sub), n.Seed)
			boxMuller8(&z[0], &z[1], &w[0], &w[1])
			if cols-c > 2 {
				boxMuller8(&z[2], &z[3], &w[2], &w[3])
			}
			for j := range min(4, cols-c) {
				for i := range 8 {
					dst[i*cols+c+j] = z[j][i]
				}
			}
		}
	}
	return dst, n
}

// wideUniformRows is wideNormalRows for UniformRows.
func (n Name) wideUniformRows(dst []float64, cols int) ([]float64, Name) {
	var w eight[uint64]
	for ; len(dst) >= 8*cols; dst, n.Sample = dst[8*cols:], n.Sample+8 {
		for c := 0; c < cols; c += 4 {
			samples8(&w, uint32(c/4), n.Sample, n.Step, uint32(n.Purpose)<<16|uint32(n.Sub), n.Seed)
			for j := range min(4, cols-c) {
				for i := range 8 {
					dst[i*cols+c+j] = Float64(uint32(w[j][i]))
				}
			}
		}
	}
	return dst, n
}
