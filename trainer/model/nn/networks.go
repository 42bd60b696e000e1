package nn

import (
	"slices"
	"strings"
)

// NetworkOf is the network that the variable called name belongs to: the outermost scope
// that it was declared in.
func NetworkOf(name string) string {
	network, _, _ := strings.Cut(name, ".")
	return network
}

// Networks are those that vars belong to, in the order of the alphabet.
func Networks(vars []Variable) []string {
	names := make([]string, len(vars))
	for i, v := range vars {
		names[i] = NetworkOf(v.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// OfNetworks are those of vars that belong to one of networks; nil is every network.
func OfNetworks(vars []Variable, networks []string) []Variable {
	return slices.DeleteFunc(slices.Clone(vars), func(v Variable) bool {
		return networks != nil && !slices.Contains(networks, NetworkOf(v.Name))
	})
}
