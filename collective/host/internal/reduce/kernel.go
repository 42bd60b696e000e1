package reduce

//go:generate go run ./_gen .

// add2 is
//
//	for i := range dst {
//		dst[i] = a[i] + b[i]
//	}
func add2[T number](dst, a, b []T) {
	n := vectorAdd(dst, a, b)
	add2Generic(dst[n:], a[n:], b[n:])
}

func add2Generic[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// add3 is
//
//	for i := range dst {
//		dst[i] = (a[i] + b[i]) + c[i]
//	}
func add3[T number](dst, a, b, c []T) {
	n := vectorAdd(dst, a, b, c)
	add3Generic(dst[n:], a[n:], b[n:], c[n:])
}

func add3Generic[T number](dst, a, b, c []T) {
	a, b, c = a[:len(dst)], b[:len(dst)], c[:len(dst)]
	for i := range dst {
		dst[i] = (a[i] + b[i]) + c[i]
	}
}

// add4 is
//
//	for i := range dst {
//		dst[i] = (a[i] + b[i]) + (c[i] + d[i])
//	}
func add4[T number](dst, a, b, c, d []T) {
	n := vectorAdd(dst, a, b, c, d)
	add4Generic(dst[n:], a[n:], b[n:], c[n:], d[n:])
}

func add4Generic[T number](dst, a, b, c, d []T) {
	a, b, c, d = a[:len(dst)], b[:len(dst)], c[:len(dst)], d[:len(dst)]
	for i := range dst {
		dst[i] = (a[i] + b[i]) + (c[i] + d[i])
	}
}

// max2 is
//
//	for i := range dst {
//		dst[i] = max(a[i], b[i])
//	}
func max2[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = max(a[i], b[i])
	}
}

// min2 is
//
//	for i := range dst {
//		dst[i] = min(a[i], b[i])
//	}
func min2[T number](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = min(a[i], b[i])
	}
}

// scale is
//
//	for i := range x {
//		x[i] *= r
//	}
func scale[T number](x []T, r T) {
	for i := vectorScale(x, r); i < len(x); i++ {
		x[i] *= r
	}
}
