package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebtrain/collective"
)

// A rank that another's failure ends leaves the first word to that one, and is ended with it;
// one that knows itself what is wrong says so at once.
func TestAfterOthers(t *testing.T) {
	of := func(err error) error {
		return &collective.Error{Kind: collective.Barrier, Err: fmt.Errorf("%w: why", err)}
	}
	for _, tt := range []struct {
		err  error
		want time.Duration
	}{
		{nil, 0},
		{errors.New("no such folder"), 0},
		{of(collective.ErrMismatch), 0},
		{errors.Join(of(collective.ErrAborted), collective.ErrOwnAbort), 0},
		{of(collective.ErrAborted), courtesy},
		{of(collective.ErrPeerLost), courtesy},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			if afterOthers(t.Context(), tt.err); time.Since(began) != tt.want {
				t.Errorf("%v: waits %v, want %v", tt.err, time.Since(began), tt.want)
			}
			ctx, cancel := context.WithTimeout(t.Context(), courtesy/2)
			defer cancel()
			began = time.Now()
			if afterOthers(ctx, tt.err); time.Since(began) > courtesy/2 {
				t.Errorf("%v: waits %v, when all are ended after %v", tt.err, time.Since(began), courtesy/2)
			}
		})
	}
}
