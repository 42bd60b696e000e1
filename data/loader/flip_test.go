package loader

import "testing"

// Which samples are mirrored is fixed by the seed, the epoch and the sample's number for
// all time, since runs that go on have mirrored by it.
func TestWhichAreMirrored(t *testing.T) {
	for _, tt := range []struct {
		seed  uint64
		epoch int64
		want  string // of samples 0 to 31, 1 where it is mirrored
	}{
		{5, 2, "00100101110101011111111000000111"},
		{6, 2, "11111100101011110011000000101100"},
		{5, 3, "10011100001011010101000111000101"},
	} {
		got := ""
		for i := range int64(32) {
			if flipped(tt.seed, tt.epoch, i) {
				got += "1"
			} else {
				got += "0"
			}
		}
		if got != tt.want {
			t.Errorf("seed %d, epoch %d: %s, want %s", tt.seed, tt.epoch, got, tt.want)
		}
	}
}
