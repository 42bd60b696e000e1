package variable

import "testing"

func TestLookup(t *testing.T) {
	list := []string{"A=1", "AB=2", "EMPTY=", "SUM=1+1=2", "A=3", "NONE"}
	for _, tt := range []struct {
		key, want string
		set       bool
	}{
		{"A", "1", true}, {"AB", "2", true}, {"EMPTY", "", true}, {"SUM", "1+1=2", true}, {"NONE", "", false}, {"B", "", false}, {"a", "", false}, {"", "", false},
	} {
		if got, set := Lookup(list, tt.key); got != tt.want || set != tt.set || Get(list, tt.key) != tt.want {
			t.Errorf("%s: %q, %t, want %q, %t", tt.key, got, set, tt.want, tt.set)
		}
	}
}
