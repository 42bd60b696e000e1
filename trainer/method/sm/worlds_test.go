package sm

import (
	"testing"
)

// Samples of one batch that change places change their noise, and with it the
// loss: noise belongs to the place.
func TestNoiseBelongsToThePlace(t *testing.T) {
	c := cases()["mdsm"]
	x := samples(c, 4)
	n := len(x) / 4
	turned := append(append([]float64(nil), x[n:]...), x[:n]...)
	a, _ := train(t, c, 1, x)
	b, _ := train(t, c, 1, turned)
	if a[0][0] == b[0][0] {
		t.Errorf("the loss is %v whatever the order of the samples", a[0][0])
	}
}
