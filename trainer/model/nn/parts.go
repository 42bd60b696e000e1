package nn

import (
	"slices"

	"ebtrain/ddp"
)

// Named names those of vars that have one of some roles.
func Named(vars []Variable, roles ...Role) map[string]bool {
	names := map[string]bool{}
	for _, v := range vars {
		if slices.Contains(roles, v.Role) {
			names[v.Name] = true
		}
	}
	return names
}

// OfRank are vars as a rank has them that keeps parts of some.
func OfRank(vars []Variable, parts []ddp.Sharded) []Variable {
	vars, types := slices.Clone(vars), map[string]ddp.Sharded{}
	for _, p := range parts {
		types[p.Name] = p
	}
	for i, v := range vars {
		if p, ok := types[v.Name]; ok {
			vars[i].Type = p.Part
		}
	}
	return vars
}

// RoleBytes is the size of those of vars that have one of some roles.
func RoleBytes(vars []Variable, roles ...Role) (n int64) {
	for _, v := range vars {
		if slices.Contains(roles, v.Role) {
			n += int64(v.Type.Bytes())
		}
	}
	return n
}
