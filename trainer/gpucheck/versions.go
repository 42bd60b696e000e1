package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	driver "ebtrain/collective/cuda"
	"ebtrain/collective/nccl"
	"ebtrain/ddp/exec/cuda/cublaslt"
	"ebtrain/ddp/exec/cuda/cudnn"
)

// versions is part a, what takes no time before what may take minutes.
func versions(ctx context.Context, _ *options, r *report) error {
	err := r.do(ctx, "a", "driver", func() (string, map[string]any, error) {
		v, err := driver.DriverVersion()
		return "", map[string]any{"cuda": v}, err
	})
	for _, f := range []driver.Family{driver.NVRTC, driver.CublasLt, driver.CuDNN, driver.NCCL} {
		err = errors.Join(err, r.do(ctx, "a", f.String(), func() (string, map[string]any, error) {
			l, err := driver.Open(f)
			if err != nil {
				return "", nil, err
			}
			return l.Path(), nil, nil
		}))
	}
	err = errors.Join(err, tryFacts(ctx, r))
	for _, h := range declared {
		err = errors.Join(err, r.do(ctx, "a", "headers of "+h.of, func() (string, map[string]any, error) {
			text, err := h.check(headers())
			if errors.Is(err, driver.ErrNotCompared) {
				err = fmt.Errorf("%w: %w", errSkipped, err)
			}
			return text, nil, err
		}))
	}
	return errors.Join(err, engines(ctx, r)) // which takes longest
}

// declared is what this program declares of NVIDIA's libraries, each compared with the
// headers that folders hold.
var declared = []struct {
	of    string
	check func(folders []string) (report string, err error)
}{{"driver and NVRTC", driver.CheckHeaders}, {"cuDNN", cudnn.CheckHeaders}, {"cuBLASLt", cublaslt.CheckHeaders}, {"NCCL", nccl.CheckHeaders}}

// headers are the folders in which NVIDIA's headers may be: beside the libraries that
// were found, as pip's packages have them, and the system's.
func headers() []string {
	folders := []string{"/usr/local/cuda/include", "/usr/include"}
	if home := os.Getenv("CUDA_HOME"); home != "" {
		folders = append(folders, filepath.Join(home, "include"))
	}
	for _, f := range []driver.Family{driver.NVRTC, driver.CublasLt, driver.CuDNN, driver.NCCL} {
		l, err := driver.Open(f)
		if err != nil {
			continue // it is a check of its own
		}
		dir := filepath.Dir(l.Path())
		folders = append(folders, filepath.Join(filepath.Dir(dir), "include"))
		if i := strings.Index(dir, "/nvidia/"); i >= 0 { // pip's packages lie side by side
			more, err := filepath.Glob(fmt.Sprintf("%s/nvidia/*/include", dir[:i]))
			if err == nil { // the pattern is ours
				folders = append(folders, more...)
			}
		}
	}
	return folders
}
