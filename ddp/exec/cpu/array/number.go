package array

// Float and Number are the types that kernels compute in.
type Float interface{ float32 | float64 }

type Number interface{ float32 | float64 | int64 }

// Fill sets every element of d to v: a few one by one, then copies of those before,
// which move as much at once as the processor can.
func Fill[T Number](d []T, v T) {
	n := min(len(d), 32)
	for i := range d[:n] {
		d[i] = v
	}
	for n < len(d) {
		n += copy(d[n:], d[:n])
	}
}
