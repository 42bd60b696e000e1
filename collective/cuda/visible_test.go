package cuda_test

import (
	"strings"
	"testing"

	"ebtrain/collective/cuda"
)

// TestNotVisible: a list of devices that the driver has cut off is told, with where.
func TestNotVisible(t *testing.T) {
	for list, want := range map[string]string{"": "", "0": "", "0,1": "", "0,-1,1": "", "0, 1 ,": "", "3,GPU-8f,0,1": "number 3 of its list", "MIG-a,MIG-b,2": "so 2 of 3 are used"} {
		t.Setenv("CUDA_VISIBLE_DEVICES", list)
		if got := cuda.NotVisible(2); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", list, got, want)
		}
	}
}
