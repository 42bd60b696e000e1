package grbm

import (
	"strings"
	"testing"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/trainer/setting"
)

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		spec    Spec
		data    data.Schema
		want    string
		visible int
	}{
		{"any", Spec{Hidden: 4}, data.Schema{C: 3, H: 28, W: 20}, "", 3 * 28 * 20},
		{"its own", Spec{1, 28, 20, 4}, data.Schema{C: 1, H: 28, W: 20}, "", 560},
		{"another size", Spec{1, 28, 20, 4}, data.Schema{C: 1, H: 20, W: 28}, "this model takes 1×28×20 (channels×height×width), not 1×20×28: choose", 0},
		{"vectors", Spec{1, 1, 0, 4}, data.Schema{C: 1, H: 1, W: 2}, "", 2},
		{"pictures for vectors", Spec{1, 1, 0, 4}, data.Schema{C: 3, H: 32, W: 32}, "this model takes 1×1×any", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.spec
			err := s.Fit(tt.data)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if err != nil {
				if s != tt.spec {
					t.Errorf("refused, and changed to %+v", s)
				}
				return
			}
			if err := s.Validate(); err != nil {
				t.Error(err)
			}
			m := s.Machine()
			if m.Visible != tt.visible || m.Hidden != 4 || m.Picture != graph.D(tt.data.C, tt.data.H, tt.data.W) {
				t.Errorf("the machine is %+v", m)
			}
		})
	}
}

func TestSpecValidate(t *testing.T) {
	for want, s := range map[string]Spec{
		"want pictures of at least 1×1×1": {0, 1, 1, 4},
		"hidden units, got 0":             {1, 1, 2, 0},
		"hidden units, got 65537":         {1, 1, 2, 1<<16 + 1},
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", s, err, want)
		}
	}
	s := Spec{1, 1, 2, 4}
	var set setting.Set
	s.Settings(&set)
	if err := set.All()[0].Set("0"); err != nil {
		t.Fatal(err)
	}
	if err := set.Finish(); err == nil || !strings.Contains(err.Error(), "want --hidden of at least 1, got 0") {
		t.Errorf("got %v", err)
	}
}
