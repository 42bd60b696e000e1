package main

import (
	"errors"
	"flag"
	"testing"

	driver "ebtrain/collective/cuda"
)

var nvidiaHeaders = flag.String("headers", "", "the folder of headers that TestNvidiaHeaders compares with, as make headers-check fetches them")

// TestNvidiaHeaders compares what is declared with NVIDIA's own headers, of the driver,
// NVRTC, cuBLASLt and NCCL; those of cuDNN are not in Debian.
func TestNvidiaHeaders(t *testing.T) {
	if *nvidiaHeaders == "" {
		t.Skip("-headers is not given: what is declared of CUDA and NCCL is not compared with their headers (make headers-check fetches them)")
	}
	for _, d := range declared {
		report, err := d.check([]string{*nvidiaHeaders})
		if d.of == "cuDNN" && errors.Is(err, driver.ErrNotCompared) {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", d.of, err)
		}
		t.Log(report)
	}
}
