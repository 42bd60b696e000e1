//go:build cgo

package cudnn

// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"time"

	"ebtrain/ddp/exec/cuda/linalg"
	"ebtrain/ddp/graph"
)

// Survey asks for a problem as Prepare does. With late it also has cuDNN compile a plan.
func (l *Library) Survey(p linalg.Conv, late bool) (s Survey, err error) {
	if err := p.Check(); err != nil {
		return s, err
	}
	s.Left = map[string]int{}
	failed := func(err error) { s.Failures = append(s.Failures, err.Error()) }
	err = l.dev.Attach(func() error {
		now, slow, err := l.offers(p, func(notes []int32) {
			s.Offered++
			if bad := unwanted(p.T, notes); bad != "" {
				s.Left[bad]++
			}
		}, failed)
		if err != nil {
			return err
		}
		s.Now, s.Late = len(now), len(slow)
		if s.Plans, err = l.build(p, now[:min(surveyed, len(now))], failed); err != nil {
			return err
		}
		if late && len(slow) > 0 {
			begun := time.Now()
			s.LatePlans, err = l.build(p, slow[:1], failed)
			s.LateTook = time.Since(begun)
		}
		return err
	})
	return s, err
}

// build counts the choices of which a plan can be built.
func (l *Library) build(p linalg.Conv, choices []choice, failed func(error)) (built int, err error) {
	for _, c := range choices {
		pl, err := l.plan(p, c)
		var e *Error
		switch {
		case err == nil:
			built++
			err = pl.release()
		case errors.As(err, &e):
			failed(fmt.Errorf("%v: %w", c, err))
			continue
		}
		if err != nil {
			return built, err
		}
	}
	return built, nil
}

// unwanted is the first of an engine's notes for which it is not taken, "" if it is.
func unwanted(t linalg.Types, notes []int32) string {
	for _, n := range notes {
		switch n {
		case C.EB_CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
			return "nondeterministic"
		case C.EB_CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
			return "convert their inputs down"
		case C.EB_CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
			return "add in reduced precision"
		case C.EB_CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
			if t.A == graph.F32 && t.Math == linalg.Full {
				return "on tensor cores"
			}
		}
	}
	return ""
}
