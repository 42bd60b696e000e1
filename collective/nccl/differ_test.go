//go:build cgo

package nccl_test

import (
	"errors"
	"testing"
	"time"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/cuda/cudatest"
	"ebtrain/collective/host"
	"ebtrain/collective/nccl"
)

// TestRanksDiffer: an NCCL that is too old, or another one, or another GPU on one rank is the
// same error on all ranks, before NCCL is begun, and the group of the hosts goes on.
func TestRanksDiffer(t *testing.T) {
	for name, test := range map[string]struct {
		versions, gpus [3]string
		is             error
		want           string
	}{
		"all old": {[3]string{"21805", "21805", "21805"}, [3]string{}, nccl.ErrVersion, "nccl: rank 0: this NCCL does not serve: it is 2.18.5; 2.19.0 or newer is needed: pip install -U"},
		"one old": {[3]string{"22809", "22809", "2708"}, [3]string{}, nccl.ErrVersion, "nccl: rank 2: this NCCL does not serve: it is 2.7.8; 2.19.0 or newer is needed: pip install -U"},
		"another": {[3]string{"22809", "22703", "22809"}, [3]string{}, nccl.ErrVersion, "nccl: this NCCL does not serve: rank 0 has NCCL 2.28.9, rank 1 has 2.27.3: install the same on all hosts"},
		"GPU":     {[3]string{"22809", "22809", "22809"}, [3]string{2: "Double H200"}, nccl.ErrModels, "the GPUs of the ranks differ: rank 0 has Double H100 (sm_90), rank 2 has Double H200 (sm_90): choose equal ones"},
	} {
		t.Run(name, func(t *testing.T) {
			m := cudatest.Use(t)
			m.Set("DEVICES", "3")
			version(t, test.versions[0])
			below, err := host.NewLocal(t.Context(), 3)
			if err != nil {
				t.Fatal(err)
			}
			errs := make([]error, 3)
			done := make(chan error, 3)
			for r, g := range below {
				if test.gpus[r] != "" {
					m.Set("NAME", test.gpus[r])
				}
				dev, err := cuda.OpenDevice(r)
				if err != nil {
					t.Fatal(err)
				}
				nccl.Forget()
				t.Setenv("EBDOUBLE_NCCL_VERSION", test.versions[r])
				go func() {
					_, errs[r] = nccl.New(t.Context(), g, dev, nccl.Options{})
					one := []int64{1}
					err := collective.Do(t.Context(), g, collective.Request{Kind: collective.AllReduce, Op: collective.Sum, Vec: collective.VecOf(one)})
					done <- errors.Join(err, dev.Close(), g.Close())
				}()
				for m.Calls("ncclGetVersion") <= r { // the next one shall see another
					time.Sleep(time.Millisecond)
				}
			}
			for range below {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			all(t, errs, test.want)
			for _, err := range errs {
				if !errors.Is(err, test.is) {
					t.Errorf("got %v, want it to wrap %v", err, test.is)
				}
			}
			m.Clean()
		})
	}
}
