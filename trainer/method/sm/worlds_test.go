package sm

import "testing"

// Three steps of each loss leave on 2 and 4 ranks what they leave on one.
func TestWorldsAgree(t *testing.T) {
	const batch, steps = 8, 3
	for name, c := range cases() {
		t.Run(name, func(t *testing.T) {
			x := samples(c, batch)
			want, vars := train(t, c, 1, steps, x)
			for _, world := range []int{2, 4} {
				got, others := train(t, c, world, steps, x)
				for i := range want {
					near(t, "report", got[i], want[i], 1e-6) // the report is F32
				}
				for _, v := range vars.Names() {
					near(t, v, numbers(t, others, v), numbers(t, vars, v), 1e-11)
				}
			}
			if want[0][0] == want[1][0] {
				t.Errorf("the loss is %v before and after a step: the test sees nothing", want[0][0])
			}
		})
	}
}

// Samples of one batch that change places change their noise, and with it the
// loss: noise belongs to the place.
func TestNoiseBelongsToThePlace(t *testing.T) {
	c := cases()["mdsm"]
	x := samples(c, 4)
	n := len(x) / 4
	turned := append(append([]float64(nil), x[n:]...), x[:n]...)
	a, _ := train(t, c, 1, 1, x)
	b, _ := train(t, c, 1, 1, turned)
	if a[0][0] == b[0][0] {
		t.Errorf("the loss is %v whatever the order of the samples", a[0][0])
	}
}
