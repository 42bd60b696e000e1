//go:build !amd64 || noasm

package philox

// wide is the set in use: there is none here.
const wide = plain

func (n Name) wideNormal(dst []float64, block uint32) ([]float64, uint32) { return dst, block }

func (n Name) wideUniform(dst []float64, block uint32) ([]float64, uint32) { return dst, block }

func (n Name) wideNormalRows(dst []float64, _ int) ([]float64, Name) { return dst, n }

func (n Name) wideUniformRows(dst []float64, _ int) ([]float64, Name) { return dst, n }

func (n Name) wideUniform32([]float32, uint32) {}

func (n Name) wideNormal32([]float32, uint32) {}
