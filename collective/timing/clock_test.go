package timing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/collective"
)

// spoils is a group of one whose all-reduces of floats take so long by the clock, and leave
// one element wrong.
type spoils struct {
	collective.Comm
	each time.Duration
}

func (spoils) Rank() int { return 0 }
func (spoils) Size() int { return 1 }

func (s spoils) Do(_ context.Context, req collective.Request) error {
	if req.Vec.Type == collective.F32 {
		time.Sleep(s.each)
		*(*float32)(req.Vec.Ptr) = -1
	}
	return nil
}

// TestMeasureCounts: a time is that of one collective in microseconds, of small vectors the
// mean of ten; the first batch is not timed; what is wrong is counted in the first two
// batches and in every sixteenth.
func TestMeasureCounts(t *testing.T) {
	for _, tt := range []struct {
		bytes, iters, reps int
		wrong              int64
	}{
		{1 << 20, 400, 40, 4},
		{1 << 20, 391, 40, 4},
		{1<<20 + 4, 20, 20, 3},
		{64, 10, 1, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			mem := collective.VecOf(make([]byte, tt.bytes))
			p := Plan{Kind: collective.AllReduce, Op: collective.Sum, Type: collective.F32, Iters: tt.iters, MaxTime: time.Hour}
			s, err := Measure(t.Context(), spoils{each: 3 * time.Millisecond}, p, mem)
			if err != nil {
				t.Fatal(err)
			}
			if !near(s.Best, 3000) || !near(s.Median, 3000) || s.Reps != tt.reps || s.Wrong != tt.wrong {
				t.Errorf("%d bytes, %d times: %+v, want 3000 us, %d times, and %d wrong", tt.bytes, tt.iters, s, tt.reps, tt.wrong)
			}
		})
	}
}
