//go:build !cgo || nodnnl

package dnnl

import (
	"errors"
	"testing"
)

func TestAbsent(t *testing.T) {
	e, err := New(1)
	if e != nil || !errors.Is(err, ErrAbsent) || Available {
		t.Errorf("got %v, %v, available %t, want nil, %v, false", e, err, Available, ErrAbsent)
	}
}
