package array

// Float and Number are the types that kernels compute in.
type Float interface{ float32 | float64 }

type Number interface{ float32 | float64 | int64 }

// Fill sets every element of d to v.
func Fill[T Number](d []T, v T) {
	for i := range d {
		d[i] = v
	}
}
