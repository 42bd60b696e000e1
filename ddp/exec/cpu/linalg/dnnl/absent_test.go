//go:build !cgo || nodnnl

package dnnl

import (
	"errors"
	"testing"
)

func TestAbsent(t *testing.T) {
	if e, err := New(1); e != nil || !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v, %v, want nil, %v", e, err, ErrAbsent)
	}
}
