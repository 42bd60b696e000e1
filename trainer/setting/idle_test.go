package setting

import "testing"

// A setting that another one leaves without effect is refused where it was changed.
func TestIdle(t *testing.T) {
	for _, tt := range []struct {
		objective, sigma string
		want             string
	}{
		{"dsm", "0.2", ""},
		{"ssm", "0.3", ""}, // what it was
		{"ssm", "0.2", "--sigma 0.2 is of no use to --objective ssm: leave it out, or say --objective dsm"},
	} {
		var s Set
		objective, sigma := "dsm", 0.3
		For(&s, "objective", &objective, "dsm", "sigma")
		Word(&s, "objective", &objective, []string{"dsm", "ssm"}, "")
		s.Float("sigma", &sigma, Positive, "")
		for i, text := range []string{tt.objective, tt.sigma} {
			if err := s.All()[i].Set(text); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := s.Useless("sigma"), tt.objective != "dsm"; got != want || s.Useless("objective") {
			t.Errorf("%+v: sigma is useless: %v", tt, got)
		}
		got := ""
		if err := s.Finish(); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
