//go:build !noasm

package philox

import "testing"

// Where there is no AVX-512 plain Go makes the same bits.
func TestNarrow(t *testing.T) {
	if !wide {
		t.Skip("this processor lacks AVX-512, so the other tests, which run, are of plain Go as it is")
	}
	defer func() { wide = true }()
	wide = false
	t.Run("streams", TestWide)
	t.Run("rows", TestRows)
}
