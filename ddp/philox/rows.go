package philox

// shortRow is a row too short to be drawn eight blocks at a time. Such rows are
// drawn eight rows at a time.
const shortRow = 32

// NormalRows fills rows of cols elements, of as many samples: row r is Normal of
// sample n.Sample + r.
func (n Name) NormalRows(dst []float64, cols int) {
	if wide != plain && cols > 0 && cols < shortRow {
		dst, n = n.wideNormalRows(dst, cols)
	}
	for ; len(dst) > 0; dst, n.Sample = dst[cols:], n.Sample+1 {
		n.Normal(dst[:cols])
	}
}

// UniformRows is NormalRows of Uniform.
func (n Name) UniformRows(dst []float64, cols int) {
	if wide != plain && cols > 0 && cols < shortRow {
		dst, n = n.wideUniformRows(dst, cols)
	}
	for ; len(dst) > 0; dst, n.Sample = dst[cols:], n.Sample+1 {
		n.Uniform(dst[:cols])
	}
}
