package nn

import (
	"slices"
	"testing"
)

// A variable belongs to the network whose name it begins with, up to the first dot.
func TestNetworks(t *testing.T) {
	vars := []Variable{{Name: "generator.conv1.weight"}, {Name: "energy.conv1.bias"}, {Name: "generator.bn1.bias"}, {Name: "energy2.w"}}
	if got, want := Networks(vars), []string{"energy", "energy2", "generator"}; !slices.Equal(got, want) {
		t.Errorf("networks %v, want %v", got, want)
	}
	names := func(vars []Variable) (all []string) {
		for _, v := range vars {
			all = append(all, v.Name)
		}
		return all
	}
	if got, want := names(OfNetworks(vars, []string{"energy"})), []string{"energy.conv1.bias"}; !slices.Equal(got, want) {
		t.Errorf("of energy: %v, want %v", got, want)
	}
	if got := OfNetworks(vars, nil); len(got) != len(vars) {
		t.Errorf("of all: %v", names(got))
	}
}
