package data

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is that of a picture, in pixels. The zero value stands for none given.
type Size struct{ H, W int } // rows, columns

// Square is n rows of n pixels: for sizes that are written in code, as tests of several packages do.
func Square(n int) Size { return Size{n, n} }

// ParseSize reads "32", a square, or "28x20", rows and columns. Whether it is
// in range is for the reader to say.
func ParseSize(text string) (Size, error) {
	rows, cols, two := strings.Cut(text, "x")
	if !two {
		cols = rows
	}
	h, err := strconv.Atoi(rows)
	w, err2 := strconv.Atoi(cols)
	if err != nil || err2 != nil {
		return Size{}, fmt.Errorf("%q, expected a side as in 32, or rows x columns as in 28x20", text)
	}
	return Size{h, w}, nil
}

// String is what ParseSize reads.
func (s Size) String() string {
	if s.H == s.W {
		return strconv.Itoa(s.H)
	}
	return fmt.Sprintf("%dx%d", s.H, s.W)
}

// Within says whether both sides are from low to high.
func (s Size) Within(low, high int) bool {
	return min(s.H, s.W) >= low && max(s.H, s.W) <= high
}
