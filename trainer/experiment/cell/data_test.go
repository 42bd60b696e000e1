package cell

import "testing"

func TestOther(t *testing.T) {
	is := Data{"train": "sha256:0123456789abcdef", "svhn/test": "b"}
	for _, c := range []struct {
		was  Data
		want string
	}{
		{nil, ""}, {is, ""}, {Data{"train": "sha256:0123456789abcdef"}, ""}, {Data{"val": "c"}, ""},
		{Data{"train": "sha256:fedcba9876543210"}, "train sha256:fedcba98…"},
		{Data{"train": "sha256:0123456789abcdef", "svhn/test": "d"}, "svhn/test d"},
	} {
		if got := c.was.Other(is); got != c.want {
			t.Errorf("%v: %q, want %q", c.was, got, c.want)
		}
		if got := is.Other(c.was); (got == "") != (c.want == "") {
			t.Errorf("the other way, %v: %q", c.was, got)
		}
	}
}
