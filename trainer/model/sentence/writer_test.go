package sentence

import (
	"math"
	"testing"
)

func TestValidate(t *testing.T) {
	least := Writer{Words: 1, Embed: 1, Hidden: 1}
	for _, tt := range []struct {
		change func(*Writer)
		ok     bool
	}{
		{func(*Writer) {}, true},
		{func(w *Writer) { w.Latent, w.Dropout = 3, math.Nextafter(1, 0) }, true},
		{func(w *Writer) { w.Words = 0 }, false},
		{func(w *Writer) { w.Embed = 0 }, false},
		{func(w *Writer) { w.Hidden = 0 }, false},
		{func(w *Writer) { w.Latent = -1 }, false},
		{func(w *Writer) { w.Dropout = 1 }, false}, // of which nothing would be left
		{func(w *Writer) { w.Dropout = -0.1 }, false},
		{func(w *Writer) { w.Dropout = math.NaN() }, false},
	} {
		w := least
		tt.change(&w)
		if err := w.Validate(); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", w, err)
		}
	}
}
