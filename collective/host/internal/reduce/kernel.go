package reduce

// add2 is
//
//	for i := range dst {
//		dst[i] = a[i] + b[i]
//	}
func add2[T number](dst, a, b []T) {
	for len(dst) >= 4 && len(a) >= 4 && len(b) >= 4 {
		x0, x1, x2, x3 := a[0]+b[0], a[1]+b[1], a[2]+b[2], a[3]+b[3]
		dst[0], dst[1], dst[2], dst[3] = x0, x1, x2, x3
		dst, a, b = dst[4:], a[4:], b[4:]
	}
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
